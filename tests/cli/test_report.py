"""`trapline report` writes a page into the folder of a crawl, or one page that compares several crawls. An unwritable
page is reported first."""

import json
from pathlib import Path

import pytest

from tests.crawler.crawl_folder import simulated, write_crawl
from trapline.cli import run

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    base = tmp_path_factory.mktemp("crawls")
    return [str(write_crawl(base / name, *simulated(200, 8, name))) for name in ("breadth-first", "opic")]


def test_the_page_of_one_crawl_is_written_into_its_folder(folders: list[str], capsys: Captured) -> None:
    assert run(["report", folders[0]]) == 0
    page = Path(folders[0], "report.html")
    assert f"wrote {page}" in capsys.readouterr().err
    assert "<h1>Crawl breadth-first</h1>" in page.read_text()


def test_several_crawls_are_compared(folders: list[str], tmp_path: Path) -> None:
    file = tmp_path / "both.html"
    assert run(["report", *folders, "-o", str(file)]) == 0
    page = file.read_text()
    assert "Comparison of crawls" in page and 'data-name="quality-time"' in page
    assert (
        "<dt>pause</dt>" in page and "<dt>strategy</dt>" not in page
    )  # the settings that both crawls share, and no others


def test_json_has_the_summary_and_the_measures_of_each_crawl_and_no_page_is_written(
    tmp_path: Path, capsys: Captured
) -> None:
    folder = write_crawl(tmp_path / "c", *simulated(200, 8))
    assert run(["report", str(folder), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["crawls"]
    assert found["folder"] == str(folder) and not (folder / "report.html").exists()
    assert found["summary"]["pages_fetched"] == found["pages_fetched"] == sum(found["pagerank_by_period"]["pages"])
    assert (
        found["processor"] is None and found["summary"]["processor"] is None
    )  # the made-up folder has no processor times
    keys = {"pagerank_by_depth", "batch_connections", "pages_per_site", "server_locality"}
    assert keys <= found.keys()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["{0}/nothing"], "name the folder of a crawl"),
        (["{0}", "{0}"], "a folder is given twice"),
        (["{0}", "-o", "{0}/no/such/folder.html"], "there is no folder"),
        (["{0}", "--json", "-o", "x.html"], "omit --json or -o"),
        ([], "Missing argument"),
    ],
)
def test_invalid_input_is_reported_in_one_line(
    folders: list[str], capsys: Captured, args: list[str], says: str
) -> None:
    assert run(["report", *(arg.format(folders[0]) for arg in args)]) == 2
    assert says in capsys.readouterr().err
