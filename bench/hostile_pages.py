"""Measures the cost of pages that are made to be costly: python bench/hostile_pages.py [MIB]

Each page is MIB MiB long (default 48) and compressed. Prints for each: milliseconds to decompress it, to find its links and to
compute its fingerprint; the peak memory of links and of the fingerprint, besides the body; the steps and the work that reading
took (docs/decisions/034); and the ratio of the time for links to that of a normal page of 42 KB. Times are processor time, the
best of three. The bound for the links of a page is 50 ms and 10 MB.
"""

import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable

import trapline.fetch.html.page
from trapline.fetch.html.fingerprint import fingerprint
from trapline.fetch.html.markup import BYTES_OF_A_PAGE
from trapline.fetch.html.page import read_page
from trapline.fetch.http.content import decoded

ROUNDS = 3
NORMAL = (
    b"<!doctype html><meta charset=utf-8><title>A page</title><link rel=canonical href=/a><body class=page>"
    + b"".join(
        b'<div class="item"><p>Some words of a page, <a class=l href="/folder/page-%d.html">a link</a>'
        b' and <a href="/list?page=%d&amp;order=name">another</a> with more words around it.</p></div>\n' % (n, n)
        for n in range(230)
    )
)


def repeated(piece: bytes) -> Callable[[int], bytes]:
    return lambda size: piece * (size // len(piece))


def within(before: bytes, piece: bytes, after: bytes) -> Callable[[int], bytes]:
    return lambda size: before + piece * ((size - len(before) - len(after)) // len(piece)) + after


PAGES: dict[str, Callable[[int], bytes]] = {
    "links of 200 references each": repeated(b'<a href="' + b"&#65;" * 200 + b'">'),
    "one link of references": within(b'<a href="', b"&amp;", b'">'),
    "many attributes in each link": repeated(b"<a rel=nofollow " + b"a " * 400 + b"href=x>"),
    "one link of attributes": within(b"<a rel=nofollow ", b"a=b ", b">"),
    "links with one reference each": repeated(b"<a href='&amp;'>"),
    "links with a reference in rel": repeated(b"<a href=x rel='&amp;'>"),
    "plain links": repeated(b"<a href=x>"),
    "words for robots": repeated(b"<meta name=robots content=none>"),
    "commas for robots": repeated(b"<meta name=robots content='" + b"," * 30_000 + b"'>"),
    "refreshes that lead nowhere": repeated(b"<meta http-equiv=refresh content='0;" + b" " * 30_000 + b"'>"),
    "canonicals in references": repeated(b"<link rel='&#99;anonical' href=''>"),
    "tags": repeated(b"<b>"),
    "brackets": repeated(b"<"),
    "comments": repeated(b"<!-->"),
    "an open comment": within(b"<!--", b"-", b""),
    "an open script": within(b"<script>", b"<", b""),
    "a script that hides itself": within(b"<script><!--", b"<script>-", b""),
    "one name": within(b"<", b"a", b""),
    "one attribute": within(b"<a ", b"h", b""),
    "one value without quotes": within(b"<a href=", b"h", b""),
    "end tags in a deep picture": within(b"<svg>" + b"<g>" * 64, b"</x>", b""),
    "pictures": repeated(b"<svg><title/>"),
    "font tags in a picture": within(b"<svg>", b"<font a a a a a/>", b""),
    "letters alone": repeated(b"letters "),
    "Latin-1, undeclared": repeated(b"<a href=\xe9>\xff"),
    "Shift_JIS, damaged": within(b"<meta charset=shift_jis>", b"<a href=\x81>\xfd\x82", b""),
    "ISO-2022-JP, damaged": within(b"<meta charset=iso-2022-jp>\x1b$B", b"\x1b(B<a href=\xff>\x1b$B\xff\xff", b""),
    "UTF-16": within(b"\xff\xfe", b"<\0a\0 \0h\0r\0e\0f\0=\0\x00\xd8>\0", b""),
    "UTF-8 of three bytes": repeated("<a href=日本語>日本語日本語".encode()),
}


def seconds(call: Callable[[], object]) -> float:
    best = 1e9
    for _ in range(ROUNDS):
        began = time.thread_time()
        call()
        best = min(best, time.thread_time() - began)
    return best


def peak_mb(call: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def line_of(wire: bytes, normal: float) -> tuple[str, float, float]:
    """Return the figures of a page as a line, and the seconds and megabytes of finding its links."""
    body = decoded(wire, b"deflate", BYTES_OF_A_PAGE, True)
    assert isinstance(body, bytes)
    took = [
        seconds(lambda: decoded(wire, b"deflate", BYTES_OF_A_PAGE, True)),
        seconds(lambda: read_page(body, None)),
        seconds(lambda: fingerprint(body, "text/html")),
    ]
    memory = peak_mb(lambda: fingerprint(body, "text/html")), peak_mb(lambda: read_page(body, None))
    steps, work = trapline.fetch.html.page._rows.spent
    figures = "".join(f"{time_s * 1e3:9.1f}" for time_s in took) + "".join(f"{mb:8.1f}" for mb in reversed(memory))
    return f"{figures}{steps:11,}{work:8,}{took[1] / normal:7.0f}", took[1], memory[1]


def main() -> None:
    size = int(float(sys.argv[1] if len(sys.argv) > 1 else 48) * 2**20)
    read_page(NORMAL, None)
    fingerprint(NORMAL, "text/html")
    normal = seconds(lambda: read_page(NORMAL, None))
    print(
        f"a normal page of {len(NORMAL) // 1000} KB: {normal * 1e3:.3f} ms, {peak_mb(lambda: read_page(NORMAL, None)):.2f} MB"
    )
    print(
        f"{'page':32}{'decode':>9}{'links':>9}{'fingerp.':>9}{'MB':>8}{'MB fp.':>8}{'steps':>11}{'work':>8}{'times':>7}"
    )
    slowest, largest = 0.0, 0.0
    for name, page in PAGES.items():
        line, took, memory = line_of(zlib.compress(page(size), 9), normal)
        print(f"{name:32}{line}", flush=True)
        slowest, largest = max(slowest, took), max(largest, memory)
    print(
        f"the slowest took {slowest * 1e3:.0f} ms, {slowest / normal:.0f} times a normal page; the largest {largest:.1f} MB"
    )


if __name__ == "__main__":
    main()
