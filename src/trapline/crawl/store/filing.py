"""What came of a page becomes records, an index line and a row. The one place that knows all three. Step 7 of the way of a URL.

It decides what is archived: every answer, whole or not, with its request. What was refused or never answered has a row
and no record. Nothing here is durable: the archive and the index gather, the rows are returned.

A page that has not changed (304) has a revisit record, which refers to the record of our copy: of the same commit, or as the database
knows it.
"""

from collections.abc import Callable
from hashlib import sha1
from typing import Any, NamedTuple

from trapline.crawl.records import Fetched, KeptCopy, RobotsFetched
from trapline.crawl.store import cdxj, warc
from trapline.crawl.store.archive import Archive, Place
from trapline.crawl.store.revisits import SMALLEST, Original, Revisits
from trapline.crawl.store.settings import StoreSettings
from trapline.crawl.store.tail import Tail

Row = tuple[Any, ...]

_NOWHERE = (None, None, None)
ROBOTS_MIME = "text/plain"


class Kept(NamedTuple):
    """Our copy of a page, as the archive has it."""

    started: float
    digest: bytes


def none_kept(page: int) -> Kept | None:
    return None


class Filing:
    """`kept`: our copy of a page as it was at the last commit, if there is one."""

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
        self._revisits = Revisits(settings.revisits)
        self._level = self._usual_level = settings.gzip_level
        self._metadata = settings.metadata

    def adopted(self, page: int, copy: KeptCopy) -> None:
        """Our copy of a page is in another partition's archive."""
        self._newest[page] = Kept(copy.fetched, copy.digest)

    def committed(self) -> None:
        self._newest.clear()

    def hurry(self, yes: bool) -> None:
        """Compress in half the time, to an eighth more."""
        self._level = warc.SMALL if yes else self._usual_level

    def page(self, f: Fetched) -> Row:
        """File one fetch; its row in the table `fetch`."""
        digest: bytes | None = None
        place: Place | tuple[None, None, None] = _NOWHERE
        if is_not_modified(f):
            place = self._not_modified(f)
        elif f.head:
            digest = sha1(f.body, usedforsecurity=False).digest()
            place = self._answer(f, f.mime, digest, f.truncated)
            if f.fingerprint:
                self._newest[f.page] = Kept(f.started, digest)
        return (
            *(f.page, f.visit, f.address, f.started, f.first_byte_s, f.total_s, f.result, f.status, f.error),
            *(len(f.wire), f.mime, digest, f.marks, len(f.links) // 4, f.truncated, *place, f.links),
            *(f.changed if f.changed >= 0 else None, f.fingerprint or None),
        )

    def robots(self, r: RobotsFetched) -> Row:
        """File one robots.txt; its row in the table `robots`."""
        # Its `body` has lost its content coding too, so only a body that came as it is has a digest.
        digest = sha1(r.wire, usedforsecurity=False).digest() if r.wire == r.body else None
        place = self._answer(r, ROBOTS_MIME, digest, "") if r.head else _NOWHERE
        return (
            *(r.site, r.visit, r.address, r.started, r.first_byte_s, r.total_s, r.status, r.error),
            *(len(r.wire), r.body, *place),
        )

    def _answer(self, f: Fetched | RobotsFetched, mime: str, digest: bytes | None, truncated: str) -> Place:
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

    def _not_modified(self, f: Fetched) -> Place:
        kept = self._newest.get(f.page) or self._kept(f.page)
        original = Original("", kept and kept.started, f.url)
        # The index of an archive has no status of what is no answer by itself (pywb's indexer).
        return self._revisit(f, cdxj.NO_STATUS, warc.base32(kept.digest) if kept else "", warc.NOT_MODIFIED, original)

    def _revisit(
        self, f: Fetched | RobotsFetched, status: int | str, payload: str, profile: str, original: Original
    ) -> Place:
        url, date, record_id = warc.plain(f.url), warc.warc_date(f.started), warc.new_record_id()
        about = warc.about_answer(f.address, payload, "")
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
    ) -> Place:
        """Archive and index an answer, with what stands beside it."""
        self._archive.make_room()
        place = self._archive.add(member)
        self._index.add(cdxj.line(f.url, f.started, mime, status, payload, place, self._archive.name()))
        self._companions(f, date, record_id)
        return place

    def _companions(self, f: Fetched | RobotsFetched, date: str, record_id: str) -> None:
        """The records that stand beside an answer's."""
        if f.request:
            header = warc.request(date, f.url, record_id, len(f.request))
            self._archive.add(warc.member(warc.SMALL, header, f.request))
        if self._metadata and isinstance(f, Fetched):
            block = warc.page_fields(f.total_s, f.hrefs)
            self._archive.add(warc.member(warc.SMALL, warc.metadata(date, f.url, record_id, len(block)), block))


def is_not_modified(f: Fetched) -> bool:
    """Whether the server said, when it was asked for that, that the page is as we have it."""
    return f.status == 304 and f.changed == 0
