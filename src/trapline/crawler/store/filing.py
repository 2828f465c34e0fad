"""Filing: turns the result of a fetch into WARC records, an index line and a database row. Step 7 of the way of a URL.

Only this module knows all three. It decides what is archived: every response, complete or not, with its request. A fetch
that was refused or got no response has a row and no record. This module makes nothing durable: it adds records to the
archive, lines to the index, and returns the rows.

A page that has not changed (304) gets a revisit record, which refers to the record of our copy. That record belongs to
the same commit, or is the one that the database knows.
"""

from collections.abc import Callable
from hashlib import sha1
from typing import Any, NamedTuple

from trapline.crawler.engine.records import Fetched, KeptCopy, RobotsFetched
from trapline.crawler.store import cdxj, warc
from trapline.crawler.store.archive import Archive, RecordPlace
from trapline.crawler.store.settings import StoreSettings
from trapline.crawler.store.tail import Tail
from trapline.crawler.store.warc import SMALLEST, Original, Revisits

Row = tuple[Any, ...]

_NOWHERE = (None, None, None)
ROBOTS_MIME = "text/plain"


class Kept(NamedTuple):
    """Our copy of a page, as it is in the archive."""

    started: float
    digest: bytes


def none_kept(page: int) -> Kept | None:
    return None


class Filing:
    """Files fetches into the archive and the index. `kept` returns our copy of a page at the last commit, if there is one."""

    def __init__(
        self,
        archive: Archive,
        index: Tail,
        settings: StoreSettings,
        kept: Callable[[int], Kept | None] = none_kept,
    ) -> None:
        self._archive = archive
        self._index = index
        self._kept = kept
        self._newest: dict[int, Kept] = {}  # copies since the last commit
        self.profiles: list[str] = []  # of the pages since the last commit: that of a revisit record, or ""
        self._profile = ""
        self._revisits = Revisits(settings.revisits)
        self._level = self._usual_level = settings.gzip_level
        self._metadata = settings.metadata

    def adopted(self, page: int, copy: KeptCopy) -> None:
        """Note our copy of a page whose record is in the archive of another partition."""
        self._newest[page] = Kept(copy.fetched, copy.digest)

    def committed(self) -> None:
        self._newest.clear()
        self.profiles.clear()

    def hurry(self, yes: bool) -> None:
        """Set the compression level: in a hurry half the time and an eighth more bytes, otherwise the usual level."""
        self._level = warc.SMALL if yes else self._usual_level

    def page(self, f: Fetched) -> Row:
        """File one fetch, and return its row in the table `fetch`."""
        digest: bytes | None = None
        self._profile = ""
        place: RecordPlace | tuple[None, None, None] = _NOWHERE
        if is_not_modified(f):
            place = self._not_modified(f)
        elif f.head:
            digest = sha1(f.body, usedforsecurity=False).digest()
            place = self._answer(f, f.mime, digest, f.truncated)
            if f.fingerprint:
                self._newest[f.page] = Kept(f.started, digest)
        self.profiles.append(self._profile)
        return (
            *(f.page, f.visit, f.address, f.started, f.first_byte_s, f.total_s, f.result, f.status, f.error),
            *(len(f.wire), f.mime, digest, f.marks, len(f.links) // 4, f.truncated, *place, f.links),
            *(f.changed if f.changed >= 0 else None, f.fingerprint or None),
        )

    def robots(self, r: RobotsFetched) -> Row:
        """File one robots.txt, and return its row in the table `robots`."""
        # `body` is without its content coding, too, so only a body that was sent without any coding gets a digest.
        digest = sha1(r.wire, usedforsecurity=False).digest() if r.wire == r.body else None
        place = self._answer(r, ROBOTS_MIME, digest, "") if r.head else _NOWHERE
        return (
            *(r.site, r.visit, r.address, r.started, r.first_byte_s, r.total_s, r.status, r.error),
            *(len(r.wire), r.body, *place),
        )

    def _answer(self, f: Fetched | RobotsFetched, mime: str, digest: bytes | None, truncated: str) -> RecordPlace:
        payload = "" if digest is None else warc.base32(digest)
        original = self._revisits.find(digest) if digest is not None and not truncated else None
        if original is not None:
            return self._revisit(f, f.status, payload, warc.IDENTICAL, original)
        url, date, record_id = warc.plain(f.url), warc.warc_date(f.started), warc.new_record_id()
        about = warc.about_answer(f.address, payload, truncated)
        header = warc.response(record_id, date, url, about, len(f.head) + len(f.wire))
        if digest is not None and len(f.body) >= SMALLEST and not truncated:
            self._revisits.remember(digest, record_id, f.started, url)
        member = warc.member(self._level, header, f.head, f.wire)
        return self._place(f, member, date, record_id, mime, f.status, payload)

    def _not_modified(self, f: Fetched) -> RecordPlace:
        kept = self._newest.get(f.page) or self._kept(f.page)
        original = Original("", kept and kept.started, f.url)
        # Like pywb's indexer, the index gives no status for a record that is no complete response by itself.
        return self._revisit(f, cdxj.NO_STATUS, warc.base32(kept.digest) if kept else "", warc.NOT_MODIFIED, original)

    def _revisit(
        self, f: Fetched | RobotsFetched, status: int | str, payload: str, profile: str, original: Original
    ) -> RecordPlace:
        url, date, record_id = warc.plain(f.url), warc.warc_date(f.started), warc.new_record_id()
        about, self._profile = warc.about_answer(f.address, payload, ""), profile
        header = warc.revisit(record_id, date, url, about, len(f.head), profile, original)
        member = warc.member(warc.SMALL, header, f.head)
        return self._place(f, member, date, record_id, cdxj.REVISIT, status, payload)

    def _place(
        self,
        f: Fetched | RobotsFetched,
        member: bytes,
        date: str,
        record_id: str,
        mime: str,
        status: int | str,
        payload: str,
    ) -> RecordPlace:
        """Archive and index a response, together with its request and metadata records."""
        self._archive.make_room()
        place = self._archive.add(member)
        self._index.add(cdxj.line(f.url, f.started, mime, status, payload, place, self._archive.name()))
        self._companions(f, date, record_id)
        return place

    def _companions(self, f: Fetched | RobotsFetched, date: str, record_id: str) -> None:
        """Archive the records that accompany a response: its request and, if wanted, its metadata."""
        if f.request:
            header = warc.request(date, f.url, record_id, len(f.request))
            self._archive.add(warc.member(warc.SMALL, header, f.request))
        if self._metadata and isinstance(f, Fetched):
            block = warc.page_fields(f.total_s, f.hrefs)
            self._archive.add(warc.member(warc.SMALL, warc.metadata(date, f.url, record_id, len(block)), block))


def is_not_modified(f: Fetched) -> bool:
    """Return whether this is a 304 answer to a conditional request: the page is the same as our copy."""
    return f.status == 304 and f.changed == 0
