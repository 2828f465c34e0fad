"""What came of a page becomes records, an index line and a row. The one place that knows all three. Step 7 of the way of a URL.

It decides what is archived: every answer, whole or not, with its request. What was refused or never answered has a row
and no record. Nothing here is durable: the archive and the index gather, the rows are returned.
"""

from hashlib import sha1
from typing import Any

from trapline.crawl.records import Fetched, RobotsFetched
from trapline.crawl.store import cdxj, warc
from trapline.crawl.store.archive import Archive, Place
from trapline.crawl.store.revisits import SMALLEST, Revisits
from trapline.crawl.store.settings import StoreSettings
from trapline.crawl.store.tail import Tail

Row = tuple[Any, ...]

_NOWHERE = (None, None, None)
ROBOTS_MIME = "text/plain"


class Filing:
    def __init__(self, archive: Archive, index: Tail, settings: StoreSettings) -> None:
        self._archive = archive
        self._index = index
        self._revisits = Revisits(settings.revisits)
        self._level = self._usual_level = settings.gzip_level
        self._metadata = settings.metadata

    def hurry(self, yes: bool) -> None:
        """Compress in half the time, to an eighth more."""
        self._level = warc.SMALL if yes else self._usual_level

    def page(self, f: Fetched) -> Row:
        """File one fetch; its row in the table `fetch`."""
        digest: bytes | None = None
        place: Place | tuple[None, None, None] = _NOWHERE
        if f.head:
            digest = sha1(f.body, usedforsecurity=False).digest()
            place = self._answer(f, f.mime, digest, f.truncated)
        return (
            *(f.page, f.visit, f.address, f.started, f.first_byte_s, f.total_s, f.result, f.status, f.error),
            *(len(f.wire), f.mime, digest, f.marks, len(f.links) // 4, f.truncated, *place, f.links),
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
        self._archive.make_room()
        url, date, record_id = warc.plain(f.url), warc.warc_date(f.started), warc.new_record_id()
        payload = "" if digest is None else warc.base32(digest)
        about = warc.about_answer(f.address, payload, truncated)
        original = self._revisits.find(digest) if digest is not None and not truncated else None
        if original is not None:
            header = warc.revisit(record_id, date, url, about, len(f.head), original)
            member, mime = warc.member(warc.SMALL, header, f.head), cdxj.REVISIT
        else:
            header = warc.response(record_id, date, url, about, len(f.head) + len(f.wire))
            member = warc.member(self._level, header, f.head, f.wire)
            if digest is not None and len(f.body) >= SMALLEST and not truncated:
                self._revisits.remember(digest, record_id, f.started, url)
        place = self._archive.add(member)
        self._index.add(cdxj.line(url, f.started, mime, f.status, payload, place, self._archive.name()))
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
