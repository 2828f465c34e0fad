"""Pages, errors and bytes have one definition: the loop, its progress, a resume, the summary, `status` and the report give equal
numbers."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crawler.crawl_folder import insert
from tests.crawler.live_web import crawled, silence
from tests.crawler.small_server import CLOSE, NOT_FOUND, Part, moved, page, small_server, text
from tests.crawler.store_world import fetched
from tests.effort import examples
from trapline.crawler.engine.records import NOT_KNOWN, ROBOTS_FILE
from trapline.crawler.engine.row_kinds import IS_HANDED_OVER
from trapline.crawler.engine.run import LiveCrawl, resume_crawl
from trapline.crawler.engine.tally import CrawlTally, is_handed_over, is_page, is_redirect, tally_of
from trapline.crawler.files import resume
from trapline.crawler.inspect.database_reader import open_database, options
from trapline.crawler.inspect.folder_status import folder_status
from trapline.crawler.inspect.summary import write_summary
from trapline.fetch import failure
from trapline.frontier import FAILED, FETCHED, REFUSED
from trapline.report.live_record import live_record

# ---- counting in the loop and in the database

RECORDS = st.lists(
    st.tuples(
        st.integers(0, 9),  # page: some repeat
        st.sampled_from([FETCHED, FAILED, REFUSED]),
        st.sampled_from(["", *failure.KINDS]),
        st.integers(0, 9),
        st.sampled_from([(200, 0), (200, ROBOTS_FILE), (301, 0), (304, 0), (404, 0)]),  # status, marks
    )
)


@settings(max_examples=examples(60))
@given(RECORDS)
def test_the_loop_counts_what_the_rows_of_the_database_count(
    kinds: list[tuple[int, int, str, int, tuple[int, int]]],
) -> None:
    records = [
        fetched(page, bytes(size))._replace(result=result, error=error, status=status, marks=marks)
        for page, result, error, size, (status, marks) in kinds
    ]
    tally, fetched_pages = CrawlTally(), dict[int, tuple[bool, bool]]()
    changed: list[int | None] = []
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(files("trapline.crawler.files").joinpath("schema.sql").read_text())
        for record in records:
            kind = (is_page(record), is_redirect(record.result, record.status))
            # A page that becomes a redirect has changed, and so has a redirect that becomes a page.
            is_other = record.result == FETCHED and fetched_pages.get(record.page, kind) != kind
            tally.note(record._replace(changed=1 if is_other else NOT_KNOWN), record.page in fetched_pages)
            changed.append(1 if is_other else None)
            if record.result == FETCHED:
                fetched_pages.setdefault(record.page, kind)
        texts = dict.fromkeys(("address", "mime", "truncated"), "")
        numbers = dict.fromkeys(("visit", "started", "total_s", "found"), 0)
        insert(
            database,
            "fetch",
            [
                {**texts, **numbers, "page": r.page, "result": r.result, "error": r.error, "bytes": len(r.wire)}
                | {"status": r.status, "marks": r.marks, "changed": new}
                for r, new in zip(records, changed, strict=True)
            ],
        )
        counted = tally_of(database)
        handed_over = [row == (1,) for row in database.execute(f"select {IS_HANDED_OVER} from fetch order by seq")]
    assert handed_over == [is_handed_over(record) for record in records]
    assert numbers_of(tally) == numbers_of(counted) and tally.errors == counted.errors
    assert (tally.refetched, tally.changed, tally.redirects) == (counted.refetched, counted.changed, counted.redirects)
    firsts = fetched_pages.values()
    assert (tally.fetched, tally.redirects) == (sum(one for one, _ in firsts), sum(one for _, one in firsts))


# ---- one crawl, counted in all places


class Numbers(NamedTuple):
    pages: int
    errors: int
    bytes: int


def numbers_of(tally: CrawlTally) -> Numbers:
    return Numbers(tally.fetched, tally.failed, tally.body_bytes)


UNDECODABLE = text("svool", "Content-Encoding: gzip\r\n").replace(b"text/plain", b"text/html")
BROKEN = page("/never", status="500 Internal Server Error")
HOME = page("/undecodable", "/missing", "/moved", "/broken", "/forbidden", "/lost", "/last")
MOVED = moved("/last")
PAGES: dict[str, bytes | list[Part]] = {
    "/robots.txt": text("User-agent: *\nDisallow: /forbidden\n"),
    "/": HOME,
    "/undecodable": UNDECODABLE,
    "/missing": NOT_FOUND,
    "/moved": MOVED,
    "/broken": BROKEN,
    "/lost": [CLOSE],
    "/last": page(),
}
TRIES = 2  # for pages that may be retried


def body_bytes(answer: bytes) -> int:
    return len(answer.partition(b"\r\n\r\n")[2])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Crawl pages of every kind. Stop after the second page and resume."""
    folder = tmp_path_factory.mktemp("crawls") / "c"
    with small_server(lambda host, target: PAGES[target]) as server:
        seeds, hosts = [f"http://a.test:{server.port}/"], {"a.test": "127.9.0.1"}
        crawled(folder, seeds, hosts, retries=TRIES - 1, backoff_s=0.0, max_pages=2, connections=1)
        assert_all_agree(folder)
        resume_crawl(folder, silence(), max_pages=1e9)
        yield folder


def assert_all_agree(folder: Path) -> Numbers:
    summary, seen, record = write_summary(folder), folder_status(folder), live_record(folder)
    with closing(open_database(folder)) as database:
        crawl_options = options(database)
        progress = database.execute("select pages, errors, bytes from progress order by rowid desc limit 1").fetchone()
    found = {
        "progress": Numbers(*progress),
        "status": Numbers(seen.pages, seen.errors, seen.bytes),
        "plots": Numbers(*(int(one[-1]) for one in record.moments[1:4])),
        "sites": Numbers(
            *(sum(one) for one in zip(*((s.pages, s.errors, s.bytes) for s in record.sites), strict=True))
        ),
        "resume": numbers_of(resume.restored(folder, crawl_options, resume.strategy_of(crawl_options)).tally),
    }
    numbers = Numbers(summary["pages_fetched"], summary["errors"], summary["bytes"])
    assert found == dict.fromkeys(found, numbers)
    return numbers


def test_all_counts_agree(folder: Path) -> None:
    bodies = sum(map(body_bytes, (HOME, UNDECODABLE, NOT_FOUND, MOVED))) + TRIES * body_bytes(BROKEN)
    assert assert_all_agree(folder) == Numbers(pages=3, errors=2 + 2 * TRIES, bytes=bodies)


def test_after_every_commit_the_progress_counts_all_committed_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed crawl, or one with a full disk, ends at any commit. `status` and a resume use its last row of progress."""
    found: list[tuple[Numbers, Numbers]] = []
    committed = LiveCrawl._committed

    def compare(crawl: LiveCrawl, batch: int) -> None:
        committed(crawl, batch)
        with closing(open_database(tmp_path / "c")) as database:  # one transaction: the store continues
            row = database.execute("select pages, errors, bytes from progress order by rowid desc limit 1").fetchone()
            found.append((Numbers(*row), numbers_of(tally_of(database))))

    monkeypatch.setattr(LiveCrawl, "_committed", compare)
    home = page(*(f"/{number}" for number in range(400)))
    with small_server(lambda host, target: home if target == "/" else page()) as server:
        crawled(tmp_path / "c", [f"http://a.test:{server.port}/"], {"a.test": "127.9.0.1"})
    assert len(found) > 8 and all(seen == counted for seen, counted in found), found


def test_every_kind_of_page_occurs_and_the_forbidden_page_is_not_an_error(folder: Path) -> None:
    summary = write_summary(folder)
    assert summary["redirects"] == 1
    assert summary["errors_by_kind"] == {"http": 1 + TRIES, "closed": TRIES, "encoding": 1}
    assert summary["forbidden_by_robots"] == 1
    assert {one.kind for one in folder_status(folder).last_errors} == set(summary["errors_by_kind"])
