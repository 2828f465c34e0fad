"""Lines of single fetches in crawl.log: one for each row of the database, in JSON and in the format of Heritrix."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.crawler.live_web import Crawled, crawled, silence
from tests.crawler.small_server import small_server
from tests.effort import slow
from tests.hostile_text import ADDRESS, HOSTILE, hostile_site
from trapline.crawler.engine.referrers import NO_PAGE, Referrers
from trapline.crawler.engine.run import resume_crawl
from trapline.crawler.store.fetch_log import LoggedFetch, status_of
from trapline.fetch import failure
from trapline.frontier import FAILED, REFUSED

FIELDS = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ( *-?\d+) ( *(?:\d+|-)) (\S+) ((?:\d+\+)?[LP]+|-) (\S+) (\S+) #\d{3} "
    r"(?:\d{17}\+\d+|-) (?:sha1:[A-Z2-7]{32}|-) - (\S+)"
)


def heritrix_lines(folder: Path) -> list[tuple[str, ...]]:
    lines = (folder / "crawl.log").read_bytes().split(b"\n")
    assert lines.pop() == b""
    found = [FIELDS.fullmatch(line.decode("ascii")) for line in lines]
    assert all(found) and all(len(line.split()) == 12 for line in lines)
    return [match.groups() for match in found if match]


def of_database(crawl: Crawled) -> list[tuple[str, str]]:
    rows = crawl.rows("select url, status, error, result from fetch join page on page.id = page order by seq")
    return [(url, str(status_of(status, error, result))) for url, status, error, result in rows]


def test_a_hostile_site_gives_one_line_of_twelve_fields_per_fetch(tmp_path: Path) -> None:
    with hostile_site() as server:
        seed = f"http://{ADDRESS}:{server.port}/"
        crawl = crawled(tmp_path / "c", [seed], {}, scope="host", backoff_s=0.0, retries=0, log_format="heritrix")
    lines = heritrix_lines(tmp_path / "c")
    pages = [(url, status.strip()) for status, _, url, path, *_ in lines if not path.endswith("P")]
    assert pages == of_database(crawl)
    robots = [line for line in lines if line[3].endswith("P")]
    assert len(robots) == len(crawl.rows("select 1 from robots")) > 0
    assert all(len(status) == 5 and len(size) == 10 for status, size, *_ in lines)
    vias = {url: (path, via) for _, _, url, path, via, *_ in lines}
    assert vias[seed] == ("-", "-")
    assert vias[f"{seed}reason"] == ("L", seed)
    events = [json.loads(line)["event"] for line in (tmp_path / "c" / "events.log").read_text().splitlines()]
    assert (events[0], events[-1]) == ("crawl_began", "crawl_ended")


def test_debug_has_one_json_line_per_fetch_and_robots_txt(tmp_path: Path) -> None:
    with hostile_site() as server:
        seed = f"http://{ADDRESS}:{server.port}/"
        crawl = crawled(tmp_path / "c", [seed], {}, scope="host", backoff_s=0.0, retries=0, log_level="debug")
    written = (tmp_path / "c" / "crawl.log").read_bytes()
    events = [json.loads(line) for line in written.splitlines()]
    fetches = [(one["url"], one["status"], one["error"]) for one in events if one["event"] == "fetch"]
    sql = "select url, status, error from fetch join page on page.id = page order by seq"
    assert written.isascii() and fetches == crawl.rows(sql)
    assert sum(one["event"] == "robots" for one in events) == len(crawl.rows("select 1 from robots"))


@slow
def test_a_resumed_crawl_knows_the_referrers_of_earlier_runs(tmp_path: Path) -> None:
    def answer(host: str, target: str) -> bytes:
        body = b"".join(b'<a href="/%d">x</a>' % number for number in range(5)) if target == "/" else b"same"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
        return head + body if target != "/robots.txt" else b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"

    with small_server(answer, (ADDRESS,)) as server:
        seed = f"http://{ADDRESS}:{server.port}/"
        crawled(tmp_path / "c", [seed], {}, max_pages=2)
        resume_crawl(tmp_path / "c", silence(), max_pages=9.0, log_format="heritrix")
    assert json.loads((tmp_path / "c" / "crawl.log.1").read_text().splitlines()[0])["event"] == "crawl_began"
    pages = [line for line in heritrix_lines(tmp_path / "c") if not line[3].endswith("P")]
    assert [(path, via) for _, _, _, path, via, *_ in pages] == [("L", seed)] * 4


@slow
def test_a_site_without_an_address_has_a_line(tmp_path: Path) -> None:
    with small_server(lambda host, target: b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", (ADDRESS,)) as server:
        seeds = [f"http://{ADDRESS}:{server.port}/", "http://link.test/"]
        crawled(tmp_path / "c", seeds, {"link.test": "169.254.0.1"}, log_format="heritrix")
    found = {url: status.strip() for status, _, url, *_ in heritrix_lines(tmp_path / "c")}
    assert found["http://link.test/"] == "-5001"


@pytest.mark.parametrize(
    ("error", "result", "expected"),
    [
        *((failure.DNS, FAILED, -1), (failure.CONNECT, -2, -2), (failure.TLS, -2, -2), (failure.CLOSED, FAILED, -3)),
        *((failure.TIMEOUT, FAILED, -4), (failure.PROTOCOL, FAILED, -5), (failure.TOO_LARGE, FAILED, -5)),
        *((failure.ROBOTS, REFUSED, -9998), (failure.ROBOTS, -2, -61), (failure.ADDRESS, -2, -5001)),
        (failure.STOPPED, 0, -7000),
    ],
)
def test_a_failure_has_the_number_of_heritrix(error: str, result: int, expected: int) -> None:
    assert status_of(0, error, result) == expected


def test_hostile_text_stays_in_its_field() -> None:
    line = LoggedFetch(0.0, 200, 5, f"http://a.test/{HOSTILE}\ud800", via=HOSTILE, mime=HOSTILE, began=1.5).line()
    assert line.isascii() and line.count(b"\n") == 1 and len(line.split()) == 12


def test_the_first_link_makes_the_referrer() -> None:
    referrers = Referrers()
    referrers.note_links(0, [0, 3, -1])
    referrers.note_links(3, [0, 3, 7])
    assert [referrers.of(page) for page in (0, 3, 7, 5, 999)] == [NO_PAGE, 0, 3, NO_PAGE, NO_PAGE]
    assert referrers.of_pages(np.array([3, 7, 999])).tolist() == [0, 3, NO_PAGE]
