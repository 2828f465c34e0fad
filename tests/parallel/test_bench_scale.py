"""`bench/scale.py` prints the disk space of a crawl, with or without partitions, and one line for a folder without a crawl."""

import sys
from pathlib import Path

import pytest

from bench import scale
from tests.crawler.crawl_folder import simulated, write_crawl
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.layout import INDEX
from trapline.parallel.folder.manifest import create
from trapline.parallel.partition import Partitioning


def crawled(folder: Path, index_bytes: int, pages: int) -> Path:
    write_crawl(folder, *simulated(pages, 4))
    (folder / INDEX).write_bytes(bytes(index_bytes))
    return folder


def test_partitions_are_added_up(tmp_path: Path) -> None:
    whole = create(tmp_path / "whole", CrawlOptions(("http://a.test/",)), Partitioning("address", 3)).folder
    # The third partition has not started.
    parts = [crawled(whole / f"partition-{number}", 1000, 60 + 60 * number) for number in range(2)]
    each, found = [scale.taken(part) for part in parts], scale.disk_of(whole)
    pages, known = sum(one.pages for one in each), sum(one.known for one in each)
    assert found.archive == sum(one.archive for one in each) / sum(one.received for one in each)
    assert found.known == sum(one.of_known for one in each) / known
    spent = found.database * pages + found.known * (known - pages)
    assert spent == pytest.approx(sum(one.database for one in each))
    assert found.of == str(whole)


def test_the_index_counts(tmp_path: Path) -> None:
    small, large = (scale.disk_of(crawled(tmp_path / f"{size}", size, 60)) for size in (0, 6000))
    assert large.database - small.database == pytest.approx(6000 / scale.taken(tmp_path / "0").pages)


@pytest.mark.parametrize("name", ["nowhere", "empty", "unbegun", "without-index"])
def test_a_folder_without_a_crawl_is_reported_in_one_line_with_exit_code_2(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    create(tmp_path / "unbegun", CrawlOptions(("http://a.test/",)), Partitioning("address", 2))
    write_crawl(tmp_path / "without-index", *simulated(60, 4))
    monkeypatch.setattr(sys, "argv", ["scale.py", "--crawl", str(tmp_path / name)])
    with pytest.raises(SystemExit) as ended:
        scale.main()
    said = capsys.readouterr()
    assert ended.value.code == 2 and not said.out
    (line,) = said.err.splitlines()
    assert name in line
