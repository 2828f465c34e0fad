"""The manifest of a parallel crawl is read as it was written, and other files are refused in one line."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.crawler.files.layout import DATABASE
from trapline.crawler.files.lock import LOCK
from trapline.errors import ConfigError
from trapline.parallel.folder.manifest import MANIFEST, create, is_parallel, read
from trapline.parallel.folder.merged import brought_up
from trapline.parallel.live.control import WHERE
from trapline.parallel.partition import Partitioning
from trapline.parallel.ray.machines import HOSTS

OPTIONS = CrawlOptions(("http://a.test/",), rules=live_rules(delay_s=2.0), hosts={"a.test": ["10.0.0.1"]}, max_pages=7)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = create(tmp_path / "c", OPTIONS, Partitioning("address", 3)).begun(replace(OPTIONS, max_bytes=5.0))
    made.write()
    assert read(tmp_path / "c") == made
    assert (made.runs, made.options.max_bytes, made.options.max_pages) == (1, 5.0, 7)
    assert [part.name for part in made.parts] == ["partition-0", "partition-1", "partition-2"]


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds other files"):
        create(tmp_path, OPTIONS, Partitioning("address", 2))
    assert not is_parallel(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "[" * 100_000, '{"format": 3}', '{"format": 3, "options": 5}'], ids=range(7)
)
def test_a_file_that_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize(
    "nonsense",
    [
        *(
            {"sizes": sizes}
            for sizes in ([], [0], [3, 2], [2.5], ["3"], [True], "48", {"3": 1}, None, [float("inf")], [5000])
        ),
        *({"kind": kind} for kind in ("rendezvous", "suffix", 5, None)),
        *({"crawl": 5}, {"runs": "x"}, {"stopped_by": None}),
    ],
    ids=str,
)
def test_a_manifest_with_impossible_values_is_refused(tmp_path: Path, nonsense: dict[str, object]) -> None:
    create(tmp_path, OPTIONS, Partitioning("address", 2))
    found = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**found, **nonsense}))
    with pytest.raises(ConfigError, match=r"cannot be read|5000 partitions"):
        read(tmp_path)


@pytest.mark.parametrize(
    "suffixes", [None, [], "edu", 0, ["edu"], {"edu": 1.0}, {"edu": True}, {"edu": "1"}, {"edu": None}], ids=str
)
@pytest.mark.parametrize("kind", ["address", "suffix"])
def test_damaged_suffixes_are_named_with_what_to_do(tmp_path: Path, suffixes: object, kind: str) -> None:
    options = replace(OPTIONS, rules=live_rules(ip_delay_s=0.0)) if kind == "suffix" else OPTIONS
    create(tmp_path, options, Partitioning(kind, 2, {"edu": 1} if kind == "suffix" else {}))
    found = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**found, "suffixes": suffixes}))
    with pytest.raises(ConfigError) as refused:
        read(tmp_path)
    assert "suffixes must be an object" in str(refused.value) and "restore it from a copy" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_manifest_of_another_version_is_refused(tmp_path: Path) -> None:
    create(tmp_path, OPTIONS, Partitioning("address", 2))
    found = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**found, "format": 99}))
    with pytest.raises(ConfigError, match="of format 99; this version reads 3"):
        read(tmp_path)


def test_a_crawl_that_never_started_has_nothing_to_show(tmp_path: Path) -> None:
    create(tmp_path, OPTIONS, Partitioning("address", 2))
    with pytest.raises(ConfigError, match="has not begun"):
        brought_up(tmp_path)


def test_the_documentation_has_a_row_for_every_file() -> None:
    page = (Path(__file__).parents[2] / "docs" / "parallel.md").read_text().split("### The folder")[1]
    named = {
        name
        for row in page.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])
    }
    assert {MANIFEST, WHERE, HOSTS, LOCK, DATABASE, f"{DATABASE}.lock", "summary.json", "partition-0"} <= named
