"""`trapline refresh accesses`: from logs, how often people access the pages of a crawl; into the crawl's inbox."""

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
from trapline.signals.access_log import CHANNEL, COUNTED, ELSEWHERE, Accesses
from trapline.terminal import say
from trapline.units import counted

if TYPE_CHECKING:
    from trapline.signals.inbox import Inbox, Signal

_MOST_LINE = 64 * 1024
_GZIP = b"\x1f\x8b"


class Known(NamedTuple):
    """What a log says of pages that the crawl knows."""

    signals: list["Signal"]
    unknown: int  # URLs that it does not


class Log(NamedTuple):
    name: str
    digest: str  # of its text: the same log is the same, packed or not
    accesses: "Accesses"


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "--site", metavar="ORIGIN", default="", help="Whose log it is, such as https://example.org; if lines do not say."
)
@click.option("--robots", is_flag=True, help="Count those, too, who call themselves robots, or nothing at all.")
@click.option("--again", is_flag=True, help="Also if the same log was read before.")
def accesses(folder: Path, logs: Sequence[str], site: str, robots: bool, again: bool) -> None:
    """Read from LOG how often the pages of the crawl in DIR are accessed. -: stdin; packed by gzip or not.

    A LOG is in the combined format of web servers, or a list: a URL, a tab, and a count or a time in seconds since 1970.
    The crawl adds accesses up over the time since it began, so the counts of all pages must be over the same time: docs/signals.md.
    """
    from trapline.crawl.store.folder import connect
    from trapline.parallel.merged import brought_up
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
            if known[log.digest].signals:  # else it may be read again, when its pages are known
                inbox.put_batch(log.digest, log.name, known[log.digest].signals)
            _say(log, known[log.digest], folder)
    finally:
        inbox.close()


def _origin(site: str) -> str:
    from trapline.fetch.urls import canonical, origin

    url = canonical(site) if site else None
    if site and url is None:
        raise ConfigError(f"--site {site}: not a site, such as https://example.org")
    return origin(url) if url else ""


def _read(name: str, site: str, robots: bool) -> Log:
    found, digest = Accesses(site, time.time(), robots), hashlib.sha256()
    try:
        with _opened(name) as read_line:
            while line := read_line(_MOST_LINE):  # a longer one is read in pieces, which are bad
                digest.update(line)
                found.read([line])
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return Log(name, digest.hexdigest(), found)


@contextmanager
def _opened(name: str) -> Iterator[Callable[[int], bytes]]:
    """What reads its next line. Packed or not, by its first bytes, whatever its name."""
    with sys.stdin.buffer if name == "-" else Path(name).open("rb") as file:
        buffered = BufferedReader(file)  # type: ignore[type-var]  # of all that we open it is true
        packed = buffered.peek(2)[:2] == _GZIP
        yield gzip.GzipFile(fileobj=buffered).readline if packed else buffered.readline


def _known(database: sqlite3.Connection, urls: set[str]) -> set[str]:
    """Those of which the crawl knows the page. A log that names hosts does not say whether by http or https: then either."""
    either = urls | {f"https{url[4:]}" for url in urls if url.startswith("http:")}
    return {url for (url,) in database.execute("select url from page") if url in either}


def _refuse_repeated(found: Sequence[Log], inbox: "Inbox", again: bool) -> None:
    for at, log in enumerate(found):
        repeated = inbox.has_batch(log.digest) or log.digest in {other.digest for other in found[:at]}
        if repeated and not again:
            raise ConfigError(f"{log.name}: this log was read before; --again counts it once more")


def _of_pages(log: Log, pages: set[str]) -> Known:
    signals, unknown = [], set()
    for signal in log.accesses.signals(CHANNEL):
        url = signal.url if signal.url in pages else f"https{signal.url[4:]}"
        if url in pages:
            signals.append(signal._replace(url=url))
        else:
            unknown.add(signal.url)
    return Known(signals, len(unknown))


def _refuse_useless(found: Sequence[Log], known: dict[str, Known]) -> None:
    """Before anything is kept. One log of several may be without any page of the crawl, but not all."""
    for log in found:
        if not log.accesses.counts:
            raise ConfigError(_nothing_counts(log))
    if not any(one.signals for one in known.values()):
        names, (url, _) = ", ".join(log.name for log in found), next(iter(found[0].accesses.counts))
        raise ConfigError(f"{names}: no line is of a page that the crawl knows, such as {url}; give its site's log")


def _nothing_counts(log: Log) -> str:
    lines = log.accesses.lines
    if lines[ELSEWHERE]:
        return f"{log.name}: its lines do not say whose log it is; give --site, such as --site https://example.org"
    left_out = ", ".join(f"{count:,} {what}" for what, count in lines.items()) or "it is empty"
    return f"{log.name}: no line counts ({left_out}); give an access log, or lines of a URL, a tab, and a count or time"


def _say(log: Log, known: Known, folder: Path) -> None:
    lines, total = log.accesses.lines, sum(signal.p for signal in known.signals)
    pages = counted(len({signal.url for signal in known.signals}), "page")
    left_out = ", ".join(f"{count:,} {what}" for what, count in lines.items() if what != COUNTED)
    say(
        f"{log.name}: {counted(lines.total(), 'line')}, {total:,.0f} access{'' if total == 1.0 else 'es'} to {pages} of the crawl; "
        f"{counted(known.unknown, 'URL')} that it does not know"
        + (f"; lines left out: {left_out}" if left_out else "")
        + (f"; they count {_from_when(folder)}, as made since the crawl began" if known.signals else "")
    )


def _from_when(folder: Path) -> str:
    from trapline.crawl.store.lock import holder

    running = holder(folder) is not None
    return "from now on" if running else f"when the crawl goes on (trapline crawl --resume {folder})"
