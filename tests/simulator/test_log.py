"""The fetch log as Parquet: every row is read back, the file is complete or absent, and it names its origin."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from tests.simulator.logs import plausible_log
from trapline import __version__
from trapline.errors import ConfigError
from trapline.frontier import FAILED, FETCHED, REFUSED, Rules
from trapline.graph import Graph, generate
from trapline.graph.strings import StoredStrings
from trapline.simulator import log as log_module
from trapline.simulator.log import RESULTS, FetchLog, bytes_of, fetched, log_of, write_parquet

SIZE = np.arange(200.0) * 10
COLUMNS = ["end_s", "start_s", "first_byte_s", "page", "url", "site", "visit", "bytes", "result"]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return generate(200, 8, seed=2)


@pytest.fixture(scope="module")
def log() -> FetchLog:
    return plausible_log(np.random.default_rng(1).permutation(200).astype(np.int32), spoiled=0.3)


def test_every_row_is_read_back(graph: Graph, log: FetchLog, tmp_path: Path) -> None:
    write_parquet(log, graph, SIZE, tmp_path / "log.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "log.parquet")
    assert table.column_names == COLUMNS
    found = table.to_pydict()
    for name, values in {
        "end_s": log.end,
        "start_s": log.start,
        "first_byte_s": log.first_byte,
        "page": log.page,
    }.items():
        assert found[name] == values.tolist()
    assert found["visit"] == log.visit.tolist()
    assert found["site"] == graph.site[log.page].tolist()
    assert graph.urls is not None
    assert found["url"] == [graph.urls[page] for page in log.page.tolist()]
    assert found["bytes"] == bytes_of(log, SIZE).tolist()
    assert found["result"] == [RESULTS[result] for result in log.result.tolist()]
    assert set(found["result"]) == {"fetched", "failed", "refused"}


def test_stored_urls_are_those_of_the_pages(graph: Graph, log: FetchLog, tmp_path: Path) -> None:
    urls = [f"http://exämple.test/{page}" for page in range(200)]
    write_parquet(log, replace(graph, urls=StoredStrings.of(urls)), SIZE, tmp_path / "log.parquet")
    found = pyarrow.parquet.read_table(tmp_path / "log.parquet", columns=["url"]).to_pydict()["url"]
    assert found == [urls[page] for page in log.page.tolist()]


def test_a_url_that_is_not_utf8_does_not_affect_others(graph: Graph, tmp_path: Path) -> None:
    text = np.frombuffer(b"a\xffbc", np.uint8)
    stored = StoredStrings(np.array([2, *[4] * 199]), text)
    write_parquet(
        log_of((1, 0, 0.0, 0.5, 1.0), (0, 1, 1.0, 1.5, 2.0)), replace(graph, urls=stored), SIZE, tmp_path / "x"
    )
    assert pyarrow.parquet.read_table(tmp_path / "x").to_pydict()["url"] == ["bc", "a\ufffd"]


def test_a_graph_without_urls_has_no_url_column(graph: Graph, log: FetchLog, tmp_path: Path) -> None:
    write_parquet(log, replace(graph, urls=None), SIZE, tmp_path / "log.parquet")
    names = pyarrow.parquet.read_schema(tmp_path / "log.parquet").names
    assert names == [name for name in COLUMNS if name != "url"]


def test_a_long_log_is_written_in_row_groups(
    graph: Graph, log: FetchLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "ROW_GROUP", 64)
    write_parquet(log, graph, SIZE, tmp_path / "log.parquet")
    file = pyarrow.parquet.ParquetFile(tmp_path / "log.parquet")
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [64, 64, 64, 8]
    assert file.read(columns=["page"]).to_pydict()["page"] == log.page.tolist()


def test_an_empty_log_is_a_file_without_rows(graph: Graph, tmp_path: Path) -> None:
    write_parquet(log_of(), graph, SIZE, tmp_path / "log.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "log.parquet")
    assert table.num_rows == 0 and table.column_names == COLUMNS


def test_the_file_names_its_origin(graph: Graph, log: FetchLog, tmp_path: Path) -> None:
    rules = Rules(delay_s=5.0, lease_s=math.inf)
    write_parquet(log, graph, SIZE, tmp_path / "log.parquet", {"strategy": "opic", "rules": rules, "connections": 3})
    about = pyarrow.parquet.read_schema(tmp_path / "log.parquet").metadata
    assert about[b"trapline"].decode() == __version__
    assert json.loads(about[b"strategy"]) == "opic" and json.loads(about[b"connections"]) == 3
    assert json.loads(about[b"rules"])["delay_s"] == 5.0
    assert json.loads(about[b"rules"])["lease_s"] == "no limit"


def test_a_failed_write_leaves_the_old_log(graph: Graph, log: FetchLog, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    path.write_text("old")
    with pytest.raises(IndexError):
        write_parquet(log._replace(page=log.page + 1_000_000), graph, SIZE, path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(ConfigError, match="no folder"):
        write_parquet(log, graph, SIZE, tmp_path / "no" / "log.parquet")


def test_only_fetched_pages_have_bytes_and_count_as_fetched() -> None:
    log = log_of((0, 0, 0.0, 1.0, 1.0, FAILED), (1, 1, 0.0, 1.0, 2.0), (2, 2, 0.0, 3.0, 3.0, REFUSED))
    assert bytes_of(log, np.array([7.0])).tolist() == [0, 7, 0]
    assert fetched(log).page.tolist() == [1]
    assert fetched(log).result.tolist() == [FETCHED]
