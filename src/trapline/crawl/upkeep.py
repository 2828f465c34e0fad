"""The pages that a crawl has: how to ask for them again, and whether they changed. Step 9 of the way of a URL.

Which ones, and when, the agenda decides (refresh/agenda.py), which also knows which of them are being asked for. It opens no socket and
reads no clock, and does not know what providers tell (hearsay.py).

A page that we have and that is not to be had now (404, 410, robots.txt) stays one that we have: the frontier is told nothing of it, so
that for it the page is as it was, and the refresher asks again after a long pause.

Who owns what: `Copies` what our copy of each page is; `_before` the copies of pages that are being fetched again, read when their visit
begins.
"""

import math
from collections.abc import Callable, Container

from trapline.crawl.copies import Copies, Copy, compared
from trapline.crawl.forbidden import Forbidden
from trapline.crawl.judge import Verdict
from trapline.crawl.outbox import Outbox
from trapline.crawl.records import NOT_KNOWN, Fetched, KeptCopy
from trapline.crawl.sites import Site
from trapline.fetch import failure
from trapline.fetch.response import Response
from trapline.fetch.validators import Validators, conditional, modified_at
from trapline.frontier import FETCHED, REFUSED, Visit
from trapline.refresh.agenda import Agenda


class Upkeep:
    def __init__(
        self,
        agenda: Agenda,
        copies: Copies,
        outbox: Outbox,
        forbidden: Forbidden,
        whole: Container[int] = (),
        ahead_s: Callable[[float], float] = lambda now: 0.0,
    ) -> None:
        """`whole`: pages to have whole the next time, changed or not. `ahead_s`: by how much our time is ahead of the servers'."""
        self.agenda, self.copies, self._outbox = agenda, copies, outbox
        self._forbidden, self._whole, self._ahead_s = forbidden, whole, ahead_s
        self._before: dict[int, Copy | None] = {}  # by page

    def conditions(self, visit: Visit) -> list[bytes]:
        """Headers by which a server can say that nothing has changed, of each page; []: they are new."""
        if not self.is_again(visit.pages[0]):
            return []
        copies = self.copies.of(visit.pages)
        self._before.update(zip(visit.pages, copies, strict=True))
        return [
            b"" if copy is None or page in self._whole else conditional(copy.validators)
            for page, copy in zip(visit.pages, copies, strict=True)
        ]

    def is_again(self, page: int) -> bool:
        return page in self.agenda.under_way

    def stands(self, record: Fetched) -> bool:
        """Whether it is a refusal of a page that we have."""
        return record.result == REFUSED and self.is_again(record.page)

    def compared(self, record: Fetched, verdict: Verdict, response: Response) -> Fetched:
        """The record of an answer, with what it says of the copy."""
        if record.result != FETCHED:
            return record
        changed, copy = compared(self._before.get(record.page), verdict, response.headers)
        if copy is None:
            return record._replace(changed=changed)
        etag, modified = copy.validators
        return record._replace(changed=changed, fingerprint=copy.fingerprint, etag=etag, modified=modified)

    def came(self, record: Fetched, now: float, worth: float) -> None:
        """A page was had, or not; the frontier has heard of it, unless our copy `stands`. `worth`: by the crawl's own measure."""
        if record.fingerprint:
            copy = Copy(record.fingerprint, Validators(record.etag, record.modified))
            self.copies.put(record.page, copy, self._outbox.number + 1)
        self._before.pop(record.page, None)
        if self.stands(record):
            if record.error == failure.ROBOTS:
                self._forbidden.add(record.page, record.site)
            self.agenda.gone(record.page, now)
            return
        changed = None if record.changed == NOT_KNOWN else record.changed == 1
        age_s = self._age_s(Validators(record.etag, record.modified), now)
        self.agenda.came(record.page, record.site, record.result, now, changed, worth, age_s)

    def adopt(self, page: int, site: int, copy: KeptCopy) -> None:
        """What another partition had of a page that is ours from now on."""
        self.copies.adopt(page, copy, self._outbox.number + 1)
        self._outbox.copies.append((page, copy))
        if copy.refused == failure.ROBOTS:
            self._forbidden.add(page, site)

    def _age_s(self, validators: Validators, now: float) -> float:
        """Since the page last changed, as its server says, by the server's time; infinity: it does not say."""
        servers_now = now - self._ahead_s(now)
        modified = modified_at(validators, servers_now)
        return math.inf if modified is None else servers_now - modified

    def over(self, visit: Visit, site: Site, now: float) -> None:
        for page in visit.pages:
            self._before.pop(page, None)
        self.agenda.over(visit, now)
        self._forbidden.look(site, now)
