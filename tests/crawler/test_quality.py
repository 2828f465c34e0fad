"""The quality of a page is the value that --quality gives, whether or not the page rank uses it; without one, what the page rank knows."""

from pathlib import Path

import pytest

from trapline.cli import run
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_quality import given_by, page_quality
from trapline.crawler.files import resume
from trapline.crawler.visits.fetch_record import PageRequest
from trapline.errors import ConfigError
from trapline.strategies.base.inputs import FROM_LINKS
from trapline.strategies.base.url_inputs import STATE_PAGES, StatePages

URLS = ("http://a.org/", "http://a.org/b", "http://a.org/c")


@pytest.fixture
def values(tmp_path: Path) -> str:
    file = tmp_path / "values"
    file.write_text("http://A.org 0.5\nhttp://a.org/b 0.25\n")
    return str(file)


def qualities(strategy: str, quality: str) -> list[float]:
    options = CrawlOptions(URLS, strategy, quality=quality)
    chosen = resume.strategy_of(options)
    given, frontier = given_by(options, chosen), resume.fresh(Path(), options, chosen).frontier
    frontier.add_sites(1, 0.0, [0])
    frontier.add_pages([0] * len(URLS))
    state_pages = {name: StatePages(name) for name in chosen.page.inputs if name in STATE_PAGES}
    for name, input_of in given.inputs.items():
        frontier.set_column(name, input_of(URLS), 0)
    for name, pages in state_pages.items():
        frontier.set_column(name, pages.of(URLS, 0), 0)
    quality_of = page_quality(given, frontier)
    return [quality_of(PageRequest(page, url, 0.0, b"")) for page, url in enumerate(URLS)]


@pytest.mark.parametrize("strategy", ["breadth-first", "opic", "crawl-ability", "omniscient"])
def test_a_quality_file_holds_for_every_strategy(strategy: str, values: str) -> None:
    assert qualities(strategy, values) == [0.5, 0.25, 0.0]


def test_without_a_file_the_quality_is_what_the_page_rank_knows() -> None:
    assert qualities("breadth-first", "opic") == [0.0, 0.0, 0.0]
    for source in FROM_LINKS:
        assert len(set(qualities("crawl-ability", source))) == 1  # cash, before any link is known


def test_a_missing_oracle_is_an_error_of_the_user() -> None:
    for source in FROM_LINKS:
        with pytest.raises(ConfigError, match="give --quality FILE"):
            qualities("omniscient", source)
    with pytest.raises(ConfigError, match="--quality pagerank: the PageRank of the live web is not known"):
        qualities("omniscient", "pagerank")


@pytest.mark.parametrize("options", [["--strategy", "omniscient"], ["--quality", "/no/such/file"]])
def test_a_crawl_that_cannot_start_leaves_no_folder(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "crawl"
    assert run(["crawl", "http://127.0.0.1/", "--allow-private", "-o", str(folder), *options]) == 2
    assert "--quality" in capsys.readouterr().err
    assert not folder.exists()
