"""Access logs and lists, line by line: what counts, what is left out, and that no line raises an exception."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.signals.access_log import AccessCounts

NOW = 1_800_000_000.0
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def line(target: str = "/a", method: str = "GET", status: int = 200, agent: str = BROWSER, when: str = "") -> bytes:
    when = when or "10/Oct/2000:13:55:36 -0700"
    return f'192.0.2.1 - frank [{when}] "{method} {target} HTTP/1.1" {status} 2326 "http://ref/" "{agent}"'.encode()


def read(*lines: bytes, site: str = "http://a.test", robots: bool = False) -> AccessCounts:
    found = AccessCounts(site, NOW, robots)
    found.read(lines)
    return found


def test_visits_are_counted_by_page_and_hour() -> None:
    found = read(line(), line(status=304), line("/b?c=1"), line(when="10/Oct/2000:14:00:00 -0700"))
    assert dict(found.counts) == {
        ("http://a.test/a", 971208000.0): 2.0,
        ("http://a.test/b?c=1", 971208000.0): 1.0,
        ("http://a.test/a", 971211600.0): 1.0,
    }
    assert found.lines == {"counted": 4}


def test_requests_that_are_not_visits_are_not_counted() -> None:
    found = read(line(method="POST"), line(method="HEAD"), line(status=404), line(status=301), line("/robots.txt"))
    assert found.lines == {"not a visit": 5} and not found.counts


@pytest.mark.parametrize(
    ("day", "is_valid"),
    [
        ("31/Feb/2001", False),
        ("29/Feb/2001", False),
        ("29/Feb/2000", True),
        ("31/Apr/2001", False),
        ("00/Jan/2001", False),
        ("01/Jan/0000", False),
    ],
)
def test_a_date_that_does_not_exist_is_a_bad_line(day: str, is_valid: bool) -> None:
    found = read(line(when=f"{day}:13:55:36 +0000"))
    assert found.lines == {"counted" if is_valid else "bad": 1} and len(found.counts) == is_valid


def test_requests_of_robots_are_not_counted_by_default() -> None:
    agents = [
        "Googlebot/2.1",
        "Mozilla/5.0 (compatible; bingbot/2.0)",
        "trapline/0.1",
        "curl/8.0",
        "-",
        "",
        "Yahoo! Slurp",
    ]
    lines = [line(agent=agent) for agent in agents]
    assert read(*lines).lines == {"robots": len(agents)}
    assert read(*lines, robots=True).lines == {"counted": len(agents)}


def test_a_log_without_user_agents_is_read() -> None:
    assert read(b'192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "GET /a HTTP/1.0" 200 -').lines == {"counted": 1}


def test_the_host_is_taken_from_the_line_if_no_site_is_given() -> None:
    found = read(b"www.a.test:80 " + line(), b"b.test " + line("/x"), line(), site="")
    assert {url for url, _ in found.counts} == {"http://www.a.test/a", "http://b.test/x"}
    assert found.lines == {"counted": 2, "elsewhere": 1}


def test_a_number_is_read_as_a_count_or_a_time_by_its_size() -> None:
    found = read(
        b"http://a.test/x\t12",
        b"http://a.test/x\t1700000000.5",
        b"/relative\t3",
        b'{"url": "http://a.test/j", "count": 4, "time": 1700000000}',
    )
    assert dict(found.counts) == {
        ("http://a.test/x", NOW): 12.0,
        ("http://a.test/x", 1699999200.0): 1.0,
        ("http://a.test/relative", NOW): 3.0,
        ("http://a.test/j", 1699999200.0): 4.0,
    }  # fmt: skip


def test_invalid_lines_are_counted() -> None:
    bad = [
        b"nonsense",
        b"http://a.test/\tx",
        b"http://a.test/\t-3",
        b"http://a.test/\tnan",
        b"http://a.test/\tinf",
        b"http://a.test/\t0",
    ]
    bad += [
        b"{}",
        b"{",
        b'{"url": 5}',
        b'{"url": "http://a.test/", "count": []}',
        b"mailto:x\t3",
        b"http://a.test/\t4000000000",
    ]
    bad += [line(when="99/Oct/2000:13:55:36 -0700"), line(when="10/Foo/2000:13:55:36 -0700"), b"\xff\xfe\x00"]
    assert read(*bad).lines == {"bad": len(bad)}
    assert not read(b"", b"   ", b"\n").lines


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_complaint(data: bytes) -> None:
    assert read(data, line()[:60] + data).lines.total() <= 2
