"""The live view of a crawl. No line wraps and no important line is missing, for any numbers and any size of the terminal."""

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.cli.crawl import view as crawl_view
from trapline.cli.crawl.view import drawn, line
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.status import RECENT_S, Counter, CrawlStatus, Recent, RefetchCounts
from trapline.crawler.engine.tally import SignalCounts
from trapline.crawler.files.handled import HandledCounts
from trapline.crawler.inspect.why_not_faster import SpeedAnswer


def status(doing: str = "", goal: float = math.inf, scale: int = 1, rows: int = 6) -> CrawlStatus:
    progress = CrawlProgress(
        50.0, 20.0, 1_234 * scale, 12, 9_876 * scale, 5_000 * scale, 3_000 * scale, 100 * scale, 98, 3.5
    )
    busiest = [(f"http://site-{site}.a-rather-long-name.example.org:8080", 9_000 - site) for site in range(rows)]
    errors = [("timeout", 7), ("connect", 5)][:rows]
    shown = CrawlStatus(progress, 61.7, 1e6, lambda: busiest, errors, "crawl-ability", "out", doing, goal, 100)
    return (
        shown._replace(abandoned_sites=[("dns", 31)], rejected_links=[("host", 1_000), ("trap", 3)])
        if rows > 6
        else shown
    )


def test_a_partitioned_crawl_shows_its_number_of_partitions() -> None:
    assert drawn(status()._replace(partitions=4), 100, 40)[0] == "trapline: crawl-ability, 4 partitions, into out"


def test_the_view_shows_pages_rates_sites_and_errors() -> None:
    assert drawn(status(goal=10_000), 100, 40) == [
        "trapline: crawl-ability, into out",
        "pages   1,234 of 10,000  61.7/s        frontier  3,000 waiting",
        "bytes   9.876 kB         1 MB/s        known     5,000 on 100 sites",
        "errors  12               1.0%          visits    98 of 100",
        "time    20 s             2.4 min left  quality   3.5",
        "",
        "busiest sites, pages in 5 s                 errors",
        "  http://site-0.a-rather-long-...  9,000      timeout              7",
        "  http://site-1.a-rather-long-...  8,999      connect              5",
        "  http://site-2.a-rather-long-...  8,998",
        "  http://site-3.a-rather-long-...  8,997",
        "  http://site-4.a-rather-long-...  8,996",
        "  http://site-5.a-rather-long-...  8,995",
        "Ctrl-C stops cleanly; --resume continues the crawl",
    ]


def test_the_view_shows_rejected_links_and_abandoned_sites() -> None:
    shown = status(rows=7)
    assert [text[44:] for text in drawn(shown, 100, 40)[6:-1]] == [
        "errors",
        "  timeout              7",
        "  connect              5",
        "abandoned sites",
        "  dns                 31",
        "rejected links",
        "  host             1,000",
        "  trap                 3",
    ]
    assert " on 100 sites (31 abandoned), " in line(shown) and "abandoned" not in line(status())


def test_pages_that_a_handler_received_are_counted_with_its_errors() -> None:
    handled = status()._replace(handled=HandledCounts(2_000, 1_200, 3), doing="waiting for the handler")
    assert " pages (61.7/s), 1,200 handled (3 handler errors), " in line(handled) and "handler errors" not in line(
        status()
    )
    assert drawn(handled, 100, 40)[5].split() == ["handled", "1,200", "handler", "3", "errors"]


def test_a_slow_crawl_has_decimals_in_its_rate() -> None:
    slow = status()._replace(pages_per_s=3.44)
    assert " pages (3.44/s), " in line(slow) and drawn(slow, 100, 40)[1].split()[2] == "3.44/s"


def test_refetched_pages_have_their_own_rate() -> None:
    def at(moment: float, fetched: int) -> CrawlStatus:
        before = status()
        return before._replace(
            progress=before.progress._replace(at=moment), refetches=RefetchCounts(fetched, 1, SignalCounts(2, 0), True)
        )

    recent = crawl_view.RecentRefetches()
    rates = [recent.note(at(float(second), 3 * second)) for second in range(20)]
    assert rates[0] == 0.0 and set(rates[1:]) == {3.0}
    assert [recent.note(at(20.0 + second, 57)) for second in range(8)][-1] == 0.0
    assert "57 refetched (3.00/s)" in line(at(1.0, 57), 3.0)
    (row,) = (text for text in drawn(at(1.0, 57), 100, 40, 3.0) if text.startswith("refetched"))
    assert row.split() == [
        "refetched",
        "57",
        "3.00/s",
        "changed",
        "2%",
        "of",
        "refetched",
        "pages;",
        "2",
        "signals,",
        "no",
        "accesses",
    ]


@given(
    st.integers(1, 200), st.integers(1, 60), st.sampled_from(("", "stopping (interrupted): 7 visits under way")),
    st.sampled_from((1, 10**6)), st.integers(0, 7), st.sampled_from((math.inf, 3e9)),
)  # fmt: skip
def test_the_view_fits_any_terminal(columns: int, rows: int, doing: str, scale: int, sites: int, goal: float) -> None:
    shown = drawn(status(doing, goal, scale, sites), columns, rows)
    assert len(shown) <= max(rows - 1, 1) and all(len(text) < columns for text in shown)
    if rows >= 7:
        assert shown[-1] == (doing or "Ctrl-C stops cleanly; --resume continues the crawl")[: columns - 1].rstrip()


def test_on_a_terminal_of_80_columns_a_large_crawl_is_not_cut() -> None:
    whole, seen = (drawn(status(goal=3_000_000, scale=100), columns, 24) for columns in (200, 80))
    assert whole[1:5] == seen[1:5]


def test_the_view_overwrites_itself_and_disappears_at_the_end() -> None:
    terminal = io.StringIO()
    with crawl_view._live(terminal) as show:
        for doing in ("", "closing: writing the last pages"):
            before = terminal.tell()
            show(status(doing))
            added = terminal.getvalue()[before:]
            assert added.count("\n") == 14 and added.endswith("\x1b[J")
        assert added.startswith("\r\x1b[14A")
    assert terminal.getvalue().endswith("\r\x1b[14A\x1b[J")


def test_a_log_has_a_line_after_two_seconds_then_every_ten_and_soon_after_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, log = 0.0, io.StringIO()
    monkeypatch.setattr(crawl_view.time, "monotonic", lambda: now)
    written = []
    with crawl_view._lines(log) as show:
        for half in range(60):
            now, before = half / 2, log.tell()
            show(status("" if now < 20 else f"stopping: {60 - half} visits" if now < 25 else "closing: sorting"))
            if log.tell() > before:
                written.append(now)
    assert written == [2.0, 12.0, 22.0, 27.0]
    assert log.getvalue().splitlines()[0] == line(status())


def test_notes_of_partitions_are_printed_once_and_stay() -> None:
    noted, said = status()._replace(notes=["partition 1: a"]), "trapline: note: partition 1: a"
    log, terminal = io.StringIO(), io.StringIO()
    with crawl_view._lines(log) as lines, crawl_view._live(terminal) as live:
        for _ in range(2):
            lines(noted)
            live(noted)
    assert log.getvalue() == f"{said}\n"
    assert terminal.getvalue().startswith(f"\r{said}\x1b[K\ntrapline: crawl-ability")
    assert terminal.getvalue().count(said) == 1 and terminal.getvalue().endswith("\r\x1b[14A\x1b[J")


def test_a_closed_output_stream_does_not_end_the_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(crawl_view, "_FIRST_LINE_S", 0.0)
    for how in (crawl_view._lines, crawl_view._live):
        with how(Closed()) as show:
            show(status())


def test_rates_and_busiest_sites_cover_the_last_seconds() -> None:
    recent, progress = Recent(), CrawlProgress(0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0)
    assert recent.note(progress, Counter()) == (0.0, 0.0)
    for second in range(1, 21):
        site = 1 if second <= 10 else 2
        progress = progress._replace(at=float(second), pages=progress.pages + site, bytes=progress.bytes + 10)
        rates = recent.note(progress, Counter({site: site, 0: 1}))
    assert rates == (2.0, 10.0)
    assert recent.busiest() == [(2, 2 * RECENT_S), (0, RECENT_S)]


def test_the_sentence_about_the_speed_is_shown_below_the_pace_and_wrapped() -> None:
    sentence = "63 of 64 connections have nothing to do: all 2,900 waiting pages are on one site, which gives 5 pages every 2 s."
    shown = drawn(status()._replace(answer=SpeedAnswer("few-sites", sentence, {}, [])), 80, 40)
    assert shown[5:7] == [
        "speed   63 of 64 connections have nothing to do: all 2,900 waiting pages are on",
        "        one site, which gives 5 pages every 2 s.",
    ]


def test_a_log_has_the_sentence_when_another_thing_limits_the_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(crawl_view.time, "monotonic", lambda: clock)
    stream = io.StringIO()
    with crawl_view._lines(stream) as show:
        for second in range(60):
            clock = float(second)
            limit = "dns" if second < 30 else "robots"
            show(status()._replace(answer=SpeedAnswer(limit, f"It waits for {limit}.", {}, [])))
    assert [text for text in stream.getvalue().splitlines() if "waits" in text] == [
        "speed: It waits for dns.",
        "speed: It waits for robots.",
    ]
