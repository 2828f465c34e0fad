"""`trapline refresh accesses`: reads from access logs how often people access the pages of a crawl, into the crawl's inbox."""

import gzip
import hashlib
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from trapline.errors import ConfigError
from trapline.signals.access_log import BAD, CHANNEL, COUNTED, ELSEWHERE, NOT_A_VISIT, ROBOTS, AccessCounts
from trapline.terminal import say
from trapline.units import counted

if TYPE_CHECKING:
    from trapline.signals.inbox import Inbox, Signal

_MOST_LINE = 64 * 1024
_GZIP = b"\x1f\x8b"
_REJECTED = {
    BAD: "in another format",
    ROBOTS: "of crawlers",
    NOT_A_VISIT: "not visits",
    ELSEWHERE: "of an unknown site",
}  # lines that are not counted, in words


class KnownAccesses(NamedTuple):
    """The accesses in a log to pages that the crawl knows."""

    signals: list["Signal"]
    unknown: int  # number of URLs that the crawl does not know


class AccessLogFile(NamedTuple):
    name: str
    digest: str  # of the uncompressed text: a log and its gzipped copy have the same digest
    accesses: "AccessCounts"


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "--site",
    metavar="ORIGIN",
    default="",
    help="Site that the log belongs to, such as https://example.org, if its lines do not name a site.",
)
@click.option("--robots", is_flag=True, help="Also count requests of crawlers and of clients without a user agent.")
@click.option("--again", is_flag=True, help="Count the log again, even if it was read before.")
def accesses(folder: Path, logs: Sequence[str], site: str, robots: bool, again: bool) -> None:
    """Read access logs, to learn how often people access the pages of the crawl in DIR.

    LOG is a plain or gzipped file, or - for stdin. It is in the combined log format of web servers, or each line has a URL, a tab,
    and a count or a time in seconds since 1970. The crawl adds up all accesses and ignores when they happened, so the logs of all
    sites must cover the same period. See docs/signals.md.
    """
    from trapline.crawler.files.layout import connect
    from trapline.parallel.folder.merged import brought_up
    from trapline.signals.inbox import Inbox

    origin = _origin(site)
    database = connect(brought_up(folder))
    found = [_read(name, origin, robots) for name in logs]
    pages = _known(database, {url for log in found for url, _ in log.accesses.counts})
    inbox = Inbox(folder)
    try:
        _refuse_repeated(found, inbox, again)
        known = {log.digest: _of_pages(log, pages) for log in found}
        _refuse_useless(found, known)
        for log in found:
            if known[log.digest].signals:  # otherwise the log may be read again later, when the crawl knows its pages
                inbox.put_batch(log.digest, log.name, known[log.digest].signals)
            _say(log, known[log.digest], folder)
    finally:
        inbox.close()


def _origin(site: str) -> str:
    from trapline.fetch.urls import canonical, origin

    url = canonical(site) if site else None
    if site and url is None:
        raise ConfigError(f"--site {site}: not a site; give an origin such as https://example.org")
    return origin(url) if url else ""


def _read(name: str, site: str, robots: bool) -> AccessLogFile:
    found, digest = AccessCounts(site, time.time(), robots), hashlib.sha256()
    try:
        with _opened(name) as read_line:
            while line := read_line(_MOST_LINE):  # a longer line is read in pieces, which count as bad lines
                digest.update(line)
                found.read([line])
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return AccessLogFile(name, digest.hexdigest(), found)


@contextmanager
def _opened(name: str) -> Iterator[Callable[[int], bytes]]:
    """Open a log and provide the function that reads its next line. The first bytes, not the name, show whether it is gzipped."""
    with sys.stdin.buffer if name == "-" else Path(name).open("rb") as file:
        buffered = BufferedReader(file)  # type: ignore[type-var]  # true for all files that are opened here
        gzipped = buffered.peek(2)[:2] == _GZIP
        yield gzip.GzipFile(fileobj=buffered).readline if gzipped else buffered.readline


def _known(database: sqlite3.Connection, urls: set[str]) -> set[str]:
    """Return the URLs whose pages the crawl knows. A log that names hosts does not tell http from https, so both are looked up."""
    either = urls | {f"https{url[4:]}" for url in urls if url.startswith("http:")}
    return {url for (url,) in database.execute("select url from page") if url in either}


def _refuse_repeated(found: Sequence[AccessLogFile], inbox: "Inbox", again: bool) -> None:
    for at, log in enumerate(found):
        repeated = inbox.has_batch(log.digest) or log.digest in {other.digest for other in found[:at]}
        if repeated and not again:
            raise ConfigError(f"{log.name}: this log was read before; give --again to count it again")


def _of_pages(log: AccessLogFile, pages: set[str]) -> KnownAccesses:
    signals, unknown = [], set()
    for signal in log.accesses.signals(CHANNEL):
        url = signal.url if signal.url in pages else f"https{signal.url[4:]}"
        if url in pages:
            signals.append(signal._replace(url=url))
        else:
            unknown.add(signal.url)
    return KnownAccesses(signals, len(unknown))


def _refuse_useless(found: Sequence[AccessLogFile], known: dict[str, KnownAccesses]) -> None:
    """Refuse logs without accesses before anything is stored. Single logs may name no page of the crawl, but not all of them."""
    for log in found:
        if not log.accesses.counts:
            raise ConfigError(_nothing_counts(log))
    if not any(accesses.signals for accesses in known.values()):
        names, (url, _) = ", ".join(log.name for log in found), next(iter(found[0].accesses.counts))
        raise ConfigError(
            f"{names}: the crawl knows no page of this log, such as {url}; give the log of a site that the crawl has visited"
        )


def _nothing_counts(log: AccessLogFile) -> str:
    lines = log.accesses.lines
    if lines[ELSEWHERE]:
        return f"{log.name}: its lines do not name the site; give the site, such as --site https://example.org"
    rejected = (
        ", ".join(f"{count:,} {_REJECTED.get(what, what)}" for what, count in lines.items()) or "the log is empty"
    )
    return f"{log.name}: no line can be used ({rejected}); give an access log, or a file whose lines have a URL, a tab, and a count or time"


def _say(log: AccessLogFile, known: KnownAccesses, folder: Path) -> None:
    lines, total = log.accesses.lines, sum(signal.p for signal in known.signals)
    pages = counted(len({signal.url for signal in known.signals}), "page")
    rejected = ", ".join(f"{count:,} {_REJECTED.get(what, what)}" for what, count in lines.items() if what != COUNTED)
    say(
        f"{log.name}: {counted(lines.total(), 'line')}, {total:,.0f} access{'' if total == 1.0 else 'es'} to {pages} of the crawl; "
        f"{counted(known.unknown, 'URL')} unknown to the crawl"
        + (f"; rejected lines: {rejected}" if rejected else "")
        + (
            f"; the crawl uses these accesses {_from_when(folder)}, as if they were made since it began"
            if known.signals
            else ""
        )
    )


def _from_when(folder: Path) -> str:
    from trapline.crawler.files.lock import holder

    running = holder(folder) is not None
    return "from now on" if running else f"when it continues (trapline crawl --resume {folder})"
