"""The pages that a crawl has: how to ask for them again, and whether they changed. Step 9 of the way of a URL.

Which ones, and when, the agenda decides (refresh/agenda.py). It opens no socket and reads no clock, and does not know what providers
tell (hearsay.py).

Who owns what: `Copies` what our copy of each page is; `_asked_again` the copies of pages that are being fetched again, from the
moment that their visit begins to its end.
"""

from collections.abc import Container

from trapline.crawl.copies import Copies, Copy, compared
from trapline.crawl.judge import Verdict
from trapline.crawl.outbox import Outbox
from trapline.crawl.records import NOT_KNOWN, Fetched
from trapline.fetch.response import Response
from trapline.fetch.validators import Validators, conditional
from trapline.frontier import FETCHED, Visit
from trapline.refresh.agenda import Agenda


class Upkeep:
    def __init__(self, agenda: Agenda, copies: Copies, outbox: Outbox, whole: Container[int] = ()) -> None:
        """`whole`: pages to have whole each time, changed or not."""
        self.agenda, self.copies, self._outbox, self._whole = agenda, copies, outbox, whole
        self._asked_again: dict[int, Copy | None] = {}  # by page

    def conditions(self, visit: Visit) -> list[bytes]:
        """Headers by which a server can say that nothing has changed, of each page; []: they are new."""
        if visit.pages[0] not in self.agenda.under_way:
            return []
        copies = self.copies.of(visit.pages)
        self._asked_again.update(zip(visit.pages, copies, strict=True))
        return [
            b"" if copy is None or page in self._whole else conditional(copy.validators)
            for page, copy in zip(visit.pages, copies, strict=True)
        ]

    def is_again(self, page: int) -> bool:
        return page in self._asked_again

    def compared(self, record: Fetched, verdict: Verdict, response: Response) -> Fetched:
        """The record of an answer, with what it says of the copy."""
        if record.result != FETCHED:
            return record
        changed, copy = compared(self._asked_again.get(record.page), verdict, response.headers)
        if copy is None:
            return record._replace(changed=changed)
        etag, modified = copy.validators
        return record._replace(changed=changed, fingerprint=copy.fingerprint, etag=etag, modified=modified)

    def came(self, record: Fetched, now: float, worth: float) -> None:
        """A page was had, or not; the frontier has heard of it. `worth`: by the crawl's own measure."""
        if record.fingerprint:
            copy = Copy(record.fingerprint, Validators(record.etag, record.modified))
            self.copies.put(record.page, copy, self._outbox.number + 1)
        self._asked_again.pop(record.page, None)
        changed = None if record.changed == NOT_KNOWN else record.changed == 1
        self.agenda.came(record.page, record.site, record.result, now, changed, worth)

    def over(self, visit: Visit, now: float) -> None:
        for page in visit.pages:
            self._asked_again.pop(page, None)
        self.agenda.over(visit, now)
