"""Pages that are fetched again, when their site moves to another partition: all that is known of them goes along, so that the new owner
goes on where the old one was.

It gathers and puts down; who owns what, and how it travels, is parallel/'s business (handover.py). Of each page: what the refresher
knows, our copy, whose body stays in the archive of whoever fetched it, and whether it is to be had whole the next time. That holds for
every list: what it says is read anew by the new owner. Of a site: how right its channels were. Of the inbox: how much of it was heard.
"""

from collections.abc import Container, Sequence
from typing import NamedTuple

from trapline.crawl.hearsay import Hearsay
from trapline.crawl.records import KeptCopy
from trapline.crawl.upkeep import Upkeep


class MovedPage(NamedTuple):
    evidence: Sequence[float]  # the refresher's
    whole: bool
    copy: KeptCopy | None


class MovedPages:
    def __init__(self, upkeep: Upkeep, hearsay: Hearsay) -> None:
        self._upkeep, self._hearsay = upkeep, hearsay
        self._refresher = upkeep.agenda.refresher
        self._lists: set[int] | None = None  # pages that tell of others, as they are when the first page leaves

    def __contains__(self, page: int) -> bool:
        return page in self._refresher

    # ---- out

    def leave(self, pages: Sequence[int], now: float) -> list[MovedPage]:
        """They are another's from now on."""
        copies, tellers = self._upkeep.copies.rows(pages), self._hearsay.tellers
        if self._lists is None:
            self._lists = tellers.whole | self._hearsay.hearing.listed.tellers
        found = [MovedPage(self._refresher.evidence(page), page in self._lists, copies.get(page)) for page in pages]
        for page in pages:
            self._refresher.moved(page, now)
            tellers.have_whole(page, False)
        return found

    def outcomes(self, site: int) -> list[float]:
        return self._refresher.outcomes(site)

    def learned(self) -> list[float]:
        return self._refresher.learned()

    def heard(self, sites: Container[str]) -> tuple[str, int]:
        """`sites`: those that move, by their origins."""
        return self._hearsay.heard_of(sites)

    # ---- in

    def adopt(self, pages: Sequence[int], site: int, moved: Sequence[MovedPage], now: float) -> None:
        for page, (evidence, whole, copy) in zip(pages, moved, strict=True):
            self._refresher.adopt(page, site, evidence, now)
            if whole:
                self._hearsay.tellers.have_whole(page, True)
            if copy is not None:
                self._upkeep.adopt(page, site, copy)

    def trust(self, site: int, outcomes: Sequence[float], now: float) -> None:
        self._refresher.trust(site, outcomes, now)

    def learn(self, learned: Sequence[float], now: float) -> None:
        self._refresher.learn(learned, now)

    def hear_after(self, inbox: str, number: int, is_first: bool) -> None:
        """Somebody from whom we have pages has heard so much of that inbox."""
        self._hearsay.hear_after(inbox, number, is_first)

    def wait(self, yes: bool) -> None:
        """Whether nothing is to be heard yet: nobody knows what is ours."""
        self._hearsay.is_deaf = yes
