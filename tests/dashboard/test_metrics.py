"""The metrics of crawls: both formats parse, sums are those of SQL, and no counter falls when the dashboard starts again."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from tests.crawler.crawl_folder import simulated, write_crawl
from tests.dashboard.dashboard_world import PAGES, made_folder, served, write
from tests.hostile_text import HOSTILE
from trapline.crawler.engine.row_kinds import IS_ERROR, KIND, REDIRECTS, RESULTS
from trapline.crawler.engine.tally import tally_of
from trapline.dashboard.fetch_histograms import BYTES, FetchHistograms, Histogram, is_error
from trapline.dashboard.metrics import BUILD, COUNTERS, GAUGES, HISTOGRAMS, exposition, families
from trapline.fetch import failure

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
OVERVIEW = {
    "state": "running",
    "paused": False,
    "totals": {"known": 500, "waiting": 100, "sites": 20},
    "connections": {"active": 3, "limit": 8},
    "disk": {"free": 10**12, "total": 10**13},
    "goals": [{"goal": "max-pages", "seconds_left": 12.5}, {"goal": "max-time", "seconds_left": None}],
}
STATUS = {
    "connections": {"limit": 8, "now": {"fetching": 3, "site_delay": 5}},
    "store": {"batches": 1, "bytes": 2000, "warc_bytes": 5},
    "partitions": [{"partition": 0, "restarts": 2}],
}


class FakeView(NamedTuple):
    status: dict[str, Any] | None = STATUS
    overview: dict[str, Any] = OVERVIEW


VIEW = FakeView()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    times = {"user_s": 1.5, "system_s": 0.5, "idle_s": 1.0}
    processor = json.dumps({"loop": times, "store": times})
    made = write_crawl(tmp_path_factory.mktemp("crawl") / "c", *simulated(), **{"processor 1": processor})
    with closing(sqlite3.connect(made / "crawl.db")) as database, database:
        database.execute("insert into rejected_link values (?, 7)", (HOSTILE,))
        database.execute("insert into abandoned_site values (3, 1.0, 'dns', 'no such host')")
        database.execute("insert into signal_total values ('sitemap', 'change', 'known page', 4)")
        database.execute("insert into partition values (1, 2, 9, 2, 0)")
    return made


@pytest.fixture
def database(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "crawl.db")) as connection:
        yield connection


def counted(*databases: sqlite3.Connection) -> FetchHistograms:
    found = FetchHistograms()
    found.read_new(*databases)
    return found


def values_of(found: list[Metric]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in found for one in family.samples}


def total(found: list[Metric], name: str) -> float:
    return sum(one.value for family in found for one in family.samples if one.name == name)


def test_both_formats_parse_and_have_the_same_values(database: sqlite3.Connection) -> None:
    views, counts = {"c": VIEW, HOSTILE: VIEW}, {"c": counted(database), HOSTILE: counted(database)}
    text, kind = exposition(views, counts, "text/plain")
    other, other_kind = exposition(views, counts, OPENMETRICS)
    assert kind.startswith("text/plain") and other_kind.startswith("application/openmetrics-text")
    assert values_of(list(prometheus(text.decode()))) == values_of(list(openmetrics(other.decode())))
    labels = {one.labels.get("crawl") for family in openmetrics(other.decode()) for one in family.samples}
    assert labels == {None, "c", HOSTILE}


def test_every_name_has_a_sample_and_the_labels_of_its_table(database: sqlite3.Connection) -> None:
    found = {family.name: family for family in families({"c": VIEW}, {"c": counted(database)})}
    for metric in (*COUNTERS, *GAUGES, *HISTOGRAMS, BUILD):
        family = found.pop(metric.name.removesuffix("_total"))
        labels = {*metric.labels, *(() if metric is BUILD else ("crawl",))}
        assert family.samples
        assert all(set(one.labels) - {"le"} == labels for one in family.samples)
    assert found == {}


def test_no_metric_has_a_label_per_site() -> None:
    labels = {label for metric in (*COUNTERS, *GAUGES, *HISTOGRAMS) for label in metric.labels}
    assert not labels & {"site", "url", "host", "address", "page"}


def test_sums_are_those_of_the_database(database: sqlite3.Connection) -> None:
    found = list(families({"c": VIEW}, {"c": counted(database)}))

    def sql(query: str) -> float:
        return float(database.execute(query).fetchone()[0])

    answers = sql("select count(*) from fetch where status > 0")
    tally = tally_of(database)
    assert total(found, "trapline_fetches_total") == sql("select count(*) from fetch") > 0
    assert total(found, "trapline_responses_total") == answers
    assert total(found, "trapline_errors_total") == sql(f"select count(*) from fetch where {IS_ERROR}") == tally.failed
    assert total(found, "trapline_received_bytes_total") == tally.body_bytes
    assert total(found, "trapline_redirects_total") == sql(f"select {REDIRECTS} from fetch")
    for metric in HISTOGRAMS:
        assert total(found, f"{metric.name}_count") == answers
    assert total(found, "trapline_response_seconds_sum") == pytest.approx(
        sql("select total(total_s) from fetch where status > 0")
    )
    assert total(found, "trapline_response_size_bytes_sum") == sql("select total(bytes) from fetch where status > 0")
    below = sql("select count(*) from fetch where status > 0 and bytes <= 4096")
    assert values_of(found)["trapline_response_size_bytes_bucket", (("crawl", "c"), ("le", "4096.0"))] == below
    assert total(found, "trapline_processor_seconds_total") == 4.0


def test_errors_are_those_of_the_status() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("create table fetch (result integer, error text)")
        for result in RESULTS:
            for error in ("", *failure.KINDS):
                database.execute("insert into fetch values (?, ?)", (result, error))
        for result, error, expected, kind in database.execute(f"select result, error, {IS_ERROR}, {KIND} from fetch"):
            assert is_error(result, error) == bool(expected)
            assert not expected or kind == error


def test_counters_never_fall_while_rows_arrive_or_when_the_dashboard_starts_again(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "c")
    counters = {metric.name for metric in COUNTERS} | {
        f"{one.name}_{end}" for one in HISTOGRAMS for end in ("bucket", "sum", "count")
    }
    with closing(sqlite3.connect(tmp_path / "c" / "crawl.db", isolation_level=None)) as database:
        database.execute("create table later as select * from fetch where seq > 100 order by seq")
        database.execute("delete from fetch where seq > 100")
        running, before = counted(database), {}
        for last in (100, 101, 101, 250, 10**9):
            database.execute(
                "insert into fetch select * from later where seq <= ? and seq not in (select seq from fetch)", (last,)
            )
            running.read_new(database)
            now = values_of(list(families({"c": VIEW}, {"c": running})))
            again = values_of(list(families({"c": VIEW}, {"c": counted(database)})))
            assert now == pytest.approx(again)
            assert all(now[key] >= value for key, value in before.items() if key[0] in counters)
            before = now


def test_partitions_add_up(folder: Path, tmp_path: Path) -> None:
    names = ("partition-2", "partition-10")
    for name in names:
        shutil.copytree(folder, tmp_path / name)
    opened = (closing(sqlite3.connect(tmp_path / name / "crawl.db")) for name in names)
    with next(opened) as first, next(opened) as second:
        one, both = counted(first), counted(first, second)
        both.read_new(first, second)
    single, double = (list(families({"c": VIEW}, {"c": counts})) for counts in (one, both))
    for name in ("trapline_pages_total", "trapline_fetches_total", "trapline_first_byte_seconds_count"):
        assert total(double, name) == 2 * total(single, name) > 0
    shares = [labels for name, labels in values_of(double) if name == "trapline_exchanged_urls_total"]
    assert [dict(labels)["partition"] for labels in shares] == ["2", "10"]


def test_a_new_crawl_in_the_same_folder_begins_at_zero(tmp_path: Path) -> None:
    place = made_folder(tmp_path / "c")
    counts = FetchHistograms()
    with closing(sqlite3.connect(place / "crawl.db")) as database:
        counts.read_new(database)
    shutil.rmtree(place)
    made_folder(place)
    write(place, "update meta set value = '1760009999.0' where key = 'created'")
    write(place, "delete from fetch where seq > 3")
    with closing(sqlite3.connect(place / "crawl.db")) as database:
        counts.read_new(database)
    assert sum(counts.totals.results.values()) == 3


def test_crawls_in_folders_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    first, second = made_folder(tmp_path / "a" / "crawl"), made_folder(tmp_path / "b" / "crawl")
    with served(first, second, first) as world:
        assert len(world.get("/api/crawls")) == 2
        text = world.ask("/metrics").body.decode()
    assert all(f'trapline_pages_total{{crawl="{place}"}} {PAGES}.0' in text for place in (first, second))


def test_the_name_of_a_folder_may_be_any_bytes(tmp_path: Path) -> None:
    with served(made_folder(tmp_path / os.fsdecode(b'\xff"}\n<b>'))) as world:
        for accept in ("text/plain", "application/openmetrics-text"):
            reply = world.ask("/metrics", headers={"Accept": accept})
            assert reply.status == 200
            assert b'trapline_pages_total{crawl="' + rb'\\udcff\"}\n<b>"} 60.0' in reply.body


def test_counts_that_are_not_complete_are_left_out(database: sqlite3.Connection) -> None:
    names = {family.name for family in families({"c": VIEW}, {"c": FetchHistograms()}) if family.samples}
    assert "trapline_pages" not in names and "trapline_waiting_pages" in names
    assert exposition({}, {}, "text/plain")[0].count(b"\n") == 3


def test_a_crawl_that_has_ended_has_no_connections() -> None:
    view = FakeView(STATUS, {**OVERVIEW, "state": "ended"})
    names = {family.name for family in families({"c": view}, {}) if family.samples}
    assert "trapline_connections" not in names and "trapline_connections_limit" in names


@pytest.mark.parametrize("values", [[], [256.0], [256.0001, 0.0, 10485760.0, 1e12]])
def test_a_bucket_counts_the_values_up_to_its_bound(values: list[float]) -> None:
    found = Histogram.empty(BYTES).with_values(np.array(values))
    upto = found.counts.cumsum().tolist()
    assert upto == [*(sum(value <= bound for value in values) for bound in BYTES), len(values)]
    assert found.sum == sum(values)


def test_metrics_import_no_compiled_code() -> None:
    code = "import trapline.dashboard.metrics, sys; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_no_fault(database: sqlite3.Connection) -> None:
    text, _ = exposition({"c": VIEW}, {"c": counted(database)}, "text/plain")
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


def test_the_guide_lists_every_metric_with_its_labels() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "monitoring.md").read_text()
    for metric in (*COUNTERS, *GAUGES, *HISTOGRAMS):
        labels = f"{{{','.join(metric.labels)}}}" if metric.labels else ""
        assert f"| `{metric.name}{labels}` |" in page
    assert BUILD.name in page
