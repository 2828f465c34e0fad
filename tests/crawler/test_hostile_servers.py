"""Broken or hostile servers: the crawl ends by itself, within its limits, with the right pages and the right errors."""

import gzip
import socket
import ssl
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from warcio.archiveiterator import ArchiveIterator

from tests.crawler.live_web import Crawled, Seen, crawled, crawled_web, silence
from tests.crawler.small_server import (
    CLOSE,
    HANG,
    NOT_FOUND,
    Answers,
    Part,
    SmallServer,
    moved,
    name_server,
    page,
    small_server,
    text,
)
from tests.effort import slow
from tests.fetch.name_server import SERVER_FAILURE, Name
from tests.testweb.webs import numbered
from trapline.crawler.discovery import site_resolver
from trapline.crawler.engine import live
from trapline.crawler.engine.run import resume_crawl
from trapline.crawler.robots import site_robots
from trapline.crawler.store.client import Store
from trapline.errors import ConfigError
from trapline.fetch import address, dns
from trapline.fetch.http.connection import open_connection
from trapline.fetch.limits import Limits
from trapline.testweb import FAULTS, HARMLESS, Behaviour, Promise, build_web

LIMITS = Limits(connect_s=1.0, first_byte_s=1.5, total_s=1.5, body_bytes=300_000, expanded_bytes=2_000_000)
QUICK = {"backoff_s": 0.05, "backoff_most_s": 0.1, "limits": LIMITS, "max_seconds": 60.0}
HOST = "a.test"
ADDRESS = "127.9.0.1"

# Result (3 fetched, 5 failed, 6 refused), status and error of a page, for each fault.
HAD = (3, 200, "")
_ONE = {
    **dict.fromkeys(HARMLESS, HAD),
    "not-found": (6, 404, "http"),
    "gone": (6, 410, "http"),
    "error": (5, 500, "http"),
    "unavailable": (5, 503, "http"),
    "unavailable-once": (5, 503, "http"),
    "too-many": (5, 429, "http"),
    "empty": (5, 0, "closed"),
    "silent": (5, 0, "timeout"),
    "reset": (5, 0, "closed"),
    "short-body": (5, 0, "closed"),
    "long-body": HAD,
    "dribble": (5, 0, "timeout"),
    "bad-chunks": (5, 0, "protocol"),
    "broken-gzip": (3, 200, "encoding"),
    "gzip-bomb": (3, 200, "encoding"),
    "endless-body": HAD,
    "endless-headers": (5, 0, "too-large"),
    "garbage": (5, 0, "protocol"),
}
TRIED = tuple(fault for fault in FAULTS if fault != "gzip-bomb")  # testweb takes seconds to make these
EXPECTED = {fault: [outcome] for fault, outcome in _ONE.items()}
EXPECTED["broken-gzip"].append(HAD)  # if some bytes are decoded before the damage


@slow
@pytest.mark.parametrize("http", ["1.1", "pipelining"])
def test_each_fault_has_its_outcome(tmp_path: Path, http: str) -> None:
    """There is one site for each fault, and some of its pages have the fault."""
    web = build_web(numbered(len(TRIED), 6), [Behaviour(faults=((fault, 0.5),)) for fault in TRIED], seed=4)
    assert {web.fault(page) for page in range(web.pages)} == {"", *TRIED}
    assert_outcomes(crawled_web(tmp_path / "crawl", web, Promise(0.0), http=http, retries=0, abandon=99, **QUICK))


def test_all_faults_mixed_have_their_outcomes(tmp_path: Path) -> None:
    web = build_web(numbered(12, 20), Behaviour(faults=tuple((fault, 0.03) for fault in TRIED)), seed=5)
    seen = crawled_web(tmp_path / "crawl", web, Promise(0.0), retries=0, abandon=99, per_connection=4, **QUICK)
    assert_outcomes(seen)


def assert_outcomes(seen: Seen) -> None:
    web, last = seen.log.web, seen.crawl.last()
    assert seen.crawl.summary["stopped_by"] == "drained" and seen.findings.disallowed == []
    for url, outcome in last.items():
        cut = url.index("/", 8)
        fault = web.fault(web.paths.page(web.origins.index(url[:cut]), url[cut:]))
        assert outcome in (EXPECTED[fault] if fault else [HAD]), (url, fault)


# ---- other servers


def crawl_of(server: SmallServer, folder: Path, path: str = "/", host: str = HOST, **options: Any) -> Crawled:
    hosts = {HOST: ADDRESS, **options.pop("hosts", {})}
    scheme = options.pop("scheme", "http")
    crawl = crawled(folder, [f"{scheme}://{host}:{server.port}{path}"], hosts, **{**QUICK, **options})
    assert crawl.summary["stopped_by"] == "drained" and crawl.summary["politeness_violations"] == 0
    return crawl


def site_of(pages: dict[str, bytes | list[Part]]) -> Answers:
    return lambda host, target: pages.get(target, NOT_FOUND)


ODD_HEADS = {
    "a status of three nines": b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
    "a status of none": b"HTTP/1.1 000 None\r\nContent-Length: 0\r\n\r\n",
    "protocols switched": b"HTTP/1.1 101 Switching\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a length without end": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 400 + b"\r\n\r\n",
    "chunks of nothing known": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\nhello",
    "interim answers only": b"HTTP/1.1 103 Early\r\n\r\n" * 5000,
    "a location that is none": page(status="302 Found", fields="Location: http://[:::/\r\n"),
    "a location of bytes": page(status="302 Found", fields="Location: \x7f\x01\r\n"),
    "a location of script": page(status="302 Found", fields="Location: javascript:alert(1)\r\n"),
    "no location": page(status="302 Found"),
    "unknown codings": page(fields="Content-Encoding: " + "gzip, " * 50 + "x\r\n"),
    "an odd type": page("/end", fields="Content-Type: ;;;=\r\nLink: <<<>>>;rel=\r\nX-Robots-Tag: :,:,\r\n"),
    "Retry-After before the epoch": page(status="503 No", fields="Retry-After: -99999999999999999999\r\n"),
    "Retry-After on no date": page(status="429 No", fields="Retry-After: Thu, 99 Foo 99999 99:99:99 GMT\r\n"),
    "a null in the head": b"HTTP/1.1 200 OK\r\nX: \0\r\nContent-Length: 0\r\n\r\n",
    "no head": b"\r\n" * 100_000,
}


def test_unusual_response_heads_break_nothing(tmp_path: Path) -> None:
    pages: dict[str, bytes | list[Part]] = {f"/{at}": [head, CLOSE] for at, head in enumerate(ODD_HEADS.values())}
    pages["/"] = page(*pages, "/last")
    pages["/last"] = page()
    with small_server(site_of(pages)) as server:
        crawl = crawl_of(server, tmp_path / "crawl", retries=0, abandon=99, http="pipelining")
    outcomes = {url.rpartition("/")[2]: outcome for url, outcome in crawl.last().items()}
    assert outcomes["last"] == HAD
    assert set(outcomes) == {"", "last", "end", "%7F", *map(str, range(len(ODD_HEADS)))}


def test_an_unrequested_answer_is_ignored(tmp_path: Path) -> None:
    """A second answer arrives after the first, at once or during a pause. The crawl does not take it for the answer to the next
    request."""
    forged = page("/forged")
    pages: dict[str, bytes | list[Part]] = {
        "/": page("/at-once", "/later", "/last"),
        "/at-once": page() + forged,
        "/later": [page(), 0.02, forged],
        "/last": page(),
    }
    with small_server(site_of(pages)) as server:
        crawl = crawl_of(server, tmp_path / "crawl", pause_s=0.1)
    assert {url.rpartition("/")[2] for url in crawl.fetched()} == {"", "at-once", "later", "last"}
    assert "/forged" not in server.targets(HOST)


def test_bodies_beyond_the_limits_are_cut_and_archived_as_truncated(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    large = head + b"Content-Length: 900000\r\n\r\n" + b"<a href=/found>x</a>".ljust(900_000)
    slow: list[Part] = [head + b"Content-Length: 99\r\n\r\n<a href=/found-too>x</a>", HANG]
    pages = {"/": page("/large", "/slow"), "/large": large, "/slow": slow, "/found": page(), "/found-too": page()}
    with small_server(site_of(pages)) as server:
        crawl = crawl_of(server, tmp_path / "crawl")
    assert crawl.rows("select truncated, bytes from fetch where truncated != '' order by truncated") == [
        ("length", LIMITS.body_bytes),
        ("time", 24),
    ]
    assert truncated_records(crawl) == {
        f"http://{HOST}:{server.port}/large": "length",
        f"http://{HOST}:{server.port}/slow": "time",
    }
    assert {"/found", "/found-too"} <= set(server.targets(HOST))


def truncated_records(crawl: Crawled) -> dict[str, str]:
    found = {}
    for path in (crawl.folder / "warc").iterdir():
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if why := record.rec_headers.get_header("WARC-Truncated"):
                    found[record.rec_headers.get_header("WARC-Target-URI")] = why
    return found


def test_connections_that_end_while_the_store_is_full_are_no_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that waits for the store has sent no request. No page fails, and the visit continues when there is room."""
    busy = iter([False] * 4)
    until = []

    def full(store: Store) -> bool:
        if next(busy, True) and not until:
            until.append(time.monotonic() + 0.4)
        return bool(until) and time.monotonic() < until[0]

    monkeypatch.setattr(Store, "full", property(full))
    pages: dict[str, bytes | list[Part]] = {f"/{number}": [page(), 0.05, CLOSE] for number in range(10)}
    with small_server(site_of({**pages, "/": page(*pages)})) as server:
        crawl = crawl_of(server, tmp_path / "crawl", abandon=1)
    assert (crawl.summary["pages_fetched"], crawl.errors()) == (11, {})


# ---- robots.txt


CANNOT_BE_HAD: dict[str, bytes | list[Part]] = {
    "never answers": [HANG],
    "head only": [b"HTTP/1.1 200 OK\r\n\r\n", HANG],
    "breaks off": [text("User-agent: *\nDisallow: /x")[:-4], CLOSE],
    "head without end": [b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000, HANG],
    "noise": [b"\0\1\2\3" * 1000, CLOSE],
    "unavailable": page(status="503 No"),
    "too many": page(status="429 No"),
    "broken gzip": text("\x1f", "Content-Encoding: gzip\r\n"),
}
SAYS_NOTHING = {
    "is not there": page(status="404 No"),
    "is no such file": text("\0<html>" * 1000),
    "goes round in circles": moved("/robots.txt"),
    "leads nowhere": moved("http://[:::/"),
}


@pytest.mark.parametrize("what", CANNOT_BE_HAD)
def test_a_robots_txt_that_cannot_be_fetched_forbids_everything(tmp_path: Path, what: str) -> None:
    """In the end the crawl abandons the site."""
    with small_server(site_of({"/robots.txt": CANNOT_BE_HAD[what], "/": page()})) as server:
        crawl_of(server, tmp_path / "crawl", abandon=1, retries=9)
    assert server.targets(HOST) == ["/robots.txt"]


@pytest.mark.parametrize("what", SAYS_NOTHING)
def test_a_robots_txt_without_rules_forbids_nothing(tmp_path: Path, what: str) -> None:
    with small_server(site_of({"/robots.txt": SAYS_NOTHING[what], "/": page()})) as server:
        crawl_of(server, tmp_path / "crawl")
    assert Counter(server.targets(HOST)) == {"/robots.txt": 6 if "circles" in what else 1, "/": 1}


def test_only_the_beginning_of_a_huge_robots_txt_counts(tmp_path: Path) -> None:
    """RFC 9309, 2.5: 500 KiB."""
    huge = text("User-agent: *\nDisallow: /secret\n" + "# no end\n" * 400_000 + "Disallow: /\n")
    with small_server(site_of({"/robots.txt": huge, "/": page("/secret", "/open")})) as server:
        crawl_of(server, tmp_path / "crawl")
    assert Counter(server.targets(HOST)) == Counter(["/robots.txt", "/", "/open"])


def bomb() -> bytes:
    """Return 50 MB of zeros, compressed."""
    packed = gzip.compress(bytes(50_000_000), 1)
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed


@pytest.mark.parametrize(("at", "errors"), [("/robots.txt", {"robots": 2}), ("/", {"encoding": 1})])
def test_compression_bombs_are_not_expanded(tmp_path: Path, at: str, errors: dict[str, int]) -> None:
    with small_server(site_of({"/": page(), at: bomb()})) as server:
        tracemalloc.start()
        crawl = crawl_of(server, tmp_path / "crawl", abandon=2)
        most_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert crawl.errors() == errors
    assert most_bytes < 40_000_000


def test_an_unreachable_robots_txt_with_retry_after_delays_its_site(tmp_path: Path) -> None:
    """The crawl obeys Retry-After: it does not visit the site again, here until the time of the crawl is over."""
    away = page(status="503 No", fields="Retry-After: 3600\r\n")
    with small_server(site_of({"/robots.txt": away})) as server:
        crawl = crawled(
            tmp_path / "crawl", [f"http://{HOST}:{server.port}/"], {HOST: ADDRESS}, **{**QUICK, "max_seconds": 1.0}
        )
    assert (crawl.summary["stopped_by"], server.targets(HOST)) == ("max-time", ["/robots.txt"])


# ---- traps


def endless(host: str, target: str) -> bytes:
    """Answer every request with links to two new pages."""
    if target == "/robots.txt":
        return NOT_FOUND
    number = int(target.rpartition("=")[2]) if "=" in target else 0
    return page(f"/calendar?day={number + 1}", f"{target.partition('?')[0]}sub/", target)


@pytest.mark.parametrize(
    ("limit", "most"),
    [({"pages_per_site": 30}, 30), ({"depth_dynamic": 5, "depth_static": 5}, 40), ({"max_pages": 25}, 25)],
)
def test_a_trap_is_bounded_by_the_limits(tmp_path: Path, limit: dict[str, int], most: int) -> None:
    with small_server(endless) as server:
        crawl = crawled(tmp_path / "crawl", [f"http://{HOST}:{server.port}/"], {HOST: ADDRESS}, **QUICK, **limit)
    assert crawl.summary["stopped_by"] == ("max-pages" if "max_pages" in limit else "drained")
    assert 5 < crawl.summary["pages_fetched"] <= most
    assert max(url.count("/sub") for url in crawl.fetched()) <= 2  # a path that repeats itself is rejected by its URL


def test_a_circle_of_redirects_ends(tmp_path: Path) -> None:
    pages = {"/": moved("/1"), "/1": moved("/2"), "/2": moved("/1"), "/self": moved("/self")}
    with small_server(site_of({**pages, "/": page("/1", "/self")})) as server:
        crawl_of(server, tmp_path / "crawl")
    assert Counter(server.targets(HOST)) == Counter(["/robots.txt", "/", "/1", "/2", "/self"])


# ---- pages that end their connections


@pytest.mark.parametrize("http", ["1.1", "pipelining"])
@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"], ids=["nothing", "half"])
def test_pages_that_always_break_off_are_retried_a_bounded_number_of_times_and_every_request_is_recorded(
    tmp_path: Path, begun: bytes, http: str
) -> None:
    """This holds even if the connection serves other pages first each time."""
    good = {f"/{number}": page(f"/{number + 1}") for number in range(60)}
    bad: dict[str, bytes | list[Part]] = {f"/bad{number}": [begun, CLOSE] for number in range(3)}
    with small_server(site_of({"/": page("/0", *bad), **good, "/60": page(), **bad})) as server:
        crawl = crawl_of(server, tmp_path / "crawl", retries=2, abandon=99, http=http, pause_s=0.0)
    request_counts = Counter(server.targets(HOST))
    assert max(request_counts[path] for path in bad) <= 2 * 3 and crawl.summary["pages_fetched"] == 62
    assert crawl.errors() == {"closed": 9}
    requests = crawl.summary["requests"]
    # If several requests were sent together, the server may not have read those behind the one that broke off.
    assert requests == sum(request_counts.values()) if http == "1.1" else requests >= sum(request_counts.values())


# ---- unreachable sites


def test_dead_sites_are_abandoned(tmp_path: Path) -> None:
    with socket.create_server((ADDRESS, 0)) as gone:
        port = gone.getsockname()[1]
    links = [f"http://dead.test:{port}/{number}" for number in range(9)]
    with small_server(site_of({"/": page(*links)})) as server:
        crawl = crawl_of(server, tmp_path / "crawl", abandon=3, retries=9, hosts={"dead.test": ADDRESS})
    assert crawl.errors() == {"connect": 3}


@pytest.mark.parametrize(("insecure", "errors"), [(False, {"tls": 5}), (True, {})])
def test_untrusted_certificates_are_refused_unless_insecure(
    tmp_path: Path, insecure: bool, errors: dict[str, int]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert(HOST).configure_cert(context)
    with small_server(site_of({"/": page()}), tls=context) as server:
        crawl = crawl_of(server, tmp_path / "crawl", scheme="https", retries=2, insecure=insecure)
    assert crawl.errors() == errors
    assert ("/" in server.targets(HOST)) == insecure


def test_names_that_cannot_be_resolved_do_not_stop_the_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_resolver, "RETRY_S", 0.05)
    monkeypatch.setattr(dns, "FAILED_S", 0.0)
    known = {HOST: Name((ADDRESS,)), "trouble.test": Name(code=SERVER_FAILURE)}
    server_links = [f"http://{name}.test:1/{number}" for name in ("absent", "trouble") for number in range(3)]
    with small_server(site_of({"/": page(*server_links, "/on"), "/on": page()})) as server, name_server(known) as at:
        crawl = crawled(tmp_path / "crawl", [f"http://{HOST}:{server.port}/"], {}, nameservers=(at,), **QUICK)
    assert (crawl.summary["stopped_by"], crawl.summary["pages_fetched"]) == ("drained", 2)


def resumed(crawl: Crawled, **changes: Any) -> Crawled:
    return Crawled(crawl.folder, resume_crawl(crawl.folder, silence(), **changes))


def test_a_resumed_crawl_resolves_unanswered_names_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {HOST: Name((ADDRESS,)), "late.test": Name(code=SERVER_FAILURE)}
    with small_server(lambda host, target: page()) as server, name_server(known) as at:
        seeds = [f"http://{host}:{server.port}/" for host in (HOST, "late.test")]
        crawl = crawled(tmp_path / "crawl", seeds, {}, nameservers=(at,), **{**QUICK, "max_seconds": 1.0})
        assert (crawl.summary["stopped_by"], server.targets("late.test")) == ("max-time", [])
        known["late.test"] = Name((ADDRESS,))
        assert resumed(crawl, max_seconds=60.0).summary["stopped_by"] == "drained"
    assert "/" in server.targets("late.test")


def test_a_resumed_crawl_requests_an_unreachable_robots_txt_again(tmp_path: Path) -> None:
    pages: dict[str, bytes | list[Part]] = {"/robots.txt": page(status="503 No"), "/": page()}
    with small_server(site_of(pages)) as server:
        options = {**QUICK, "max_seconds": 0.5, "backoff_s": 1.0, "backoff_most_s": 1.0}
        crawl = crawled(tmp_path / "crawl", [f"http://{HOST}:{server.port}/"], {HOST: ADDRESS}, **options)
        pages["/robots.txt"] = NOT_FOUND
        assert resumed(crawl, max_seconds=60.0).summary["pages_fetched"] == 1


# ---- the guard


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Let ADDRESS count as public. Return the list of the addresses that were connected to."""
    judged, opened = address.refused, list[str]()

    def refused(one: str) -> str:
        return "" if one == ADDRESS else judged(one)

    def spied(loop: Any, where: str, *rest: Any) -> Any:
        opened.append(where)
        return open_connection(loop, where, *rest)

    monkeypatch.setattr(address, "refused", refused)
    monkeypatch.setattr(live, "open_connection", spied)
    yield opened


PRIVATE = [
    "inside.test",
    "127.9.0.2",
    "[::1]",
    "[::ffff:127.9.0.2]",
    "localhost",
    "169.254.169.254",
    "10.0.0.1",
    "0x7f090002",
]


@pytest.mark.parametrize("way", ["link", "redirect", "robots"])
def test_no_link_redirect_or_robots_txt_leads_to_a_private_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public: list[str], way: str
) -> None:
    monkeypatch.setattr(site_robots, "FIRST_WAIT_S", 0.001)
    with small_server(lambda host, target: page(), ("127.9.0.2",)) as inside:
        targets = [f"http://{host}:{inside.port}/" for host in PRIVATE]
        pages: dict[str, bytes] = {f"/{at}": moved(target) for at, target in enumerate(targets)}
        pages["/"] = page(*targets) if way == "link" else page(*pages)
        if way == "robots":
            pages["/robots.txt"] = moved(targets[0])
        with small_server(site_of(dict(pages))) as server:
            crawl = crawl_of(server, tmp_path / "crawl", allow_private=False, hosts={"inside.test": "127.9.0.2"})
    assert set(public) == {ADDRESS} and inside.connections == 0
    assert crawl.summary["pages_fetched"] == {"link": 1, "redirect": 1, "robots": 0}[way]
    assert crawl.summary["redirects"] == (len(PRIVATE) if way == "redirect" else 0)


def test_a_name_that_changes_to_a_private_address_is_not_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public: list[str]
) -> None:
    """DNS rebinding: the first answer is public, and every later answer is private."""
    monkeypatch.setattr(dns, "LEAST_TTL_S", 0.0)
    answers = iter([Name((ADDRESS,), ttl_s=0)] * 2)  # the check of the seeds takes one answer

    class Rebinding(dict[str, Name]):
        def get(self, name: str, default: Name | None = None) -> Name:  # type: ignore[override]
            return next(answers, Name(("127.9.0.2", "10.0.0.1"), ttl_s=0))

    with small_server(lambda host, target: page(), ("127.9.0.2",)) as inside, name_server(Rebinding()) as at:
        pages = {"/": page(*(f"/{number}" for number in range(20)))}
        with small_server(site_of({**pages})) as server:
            url = f"http://{HOST}:{server.port}/"
            options = {**QUICK, "allow_private": False, "nameservers": (at,), "per_connection": 1}
            crawl = crawled(tmp_path / "crawl", [url], {}, **options)
    assert crawl.summary["stopped_by"] == "drained" and 1 <= crawl.summary["pages_fetched"] < 20
    assert set(public) == {ADDRESS} and inside.connections == 0


def test_addresses_of_cloud_metadata_are_refused_even_if_private_addresses_are_allowed(
    tmp_path: Path, public: list[str]
) -> None:
    with small_server(site_of({"/": page("http://169.254.169.254/latest/meta-data/")})) as server:
        crawl_of(server, tmp_path / "crawl", allow_private=True)
    assert set(public) == {ADDRESS}


def test_a_private_seed_is_refused_before_the_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"10\.0\.0\.1 is a private address"):
        crawled(tmp_path / "crawl", [f"http://{HOST}/"], {HOST: "10.0.0.1"}, allow_private=False)
    assert not (tmp_path / "crawl").exists()
