"""Refetched pages whose site moves to another partition: all that is known of them moves too, so that the new owner goes on.

This module collects the data and takes it in. parallel/live/handover.py decides who owns what, and transports it. The
data of a page: what the refresher knows, our copy (the body stays in the archive of the partition that fetched it), and
whether its next request has no condition. The latter holds for every published list, so that the new owner reads its
entries. The data of a site: how reliable its channels were. The data of the inbox: how far it was read.
"""

from collections.abc import Container, Sequence
from typing import NamedTuple

from trapline.crawler.engine.records import KeptCopy
from trapline.crawler.recrawl.conditional_refetch import ConditionalRefetch
from trapline.crawler.recrawl.signal_intake import SignalIntake


class MovedPage(NamedTuple):
    evidence: Sequence[float]  # of the refresher
    whole: bool  # whether the next request has no condition
    copy: KeptCopy | None


class MovedPages:
    def __init__(self, refetch: ConditionalRefetch, signal_intake: SignalIntake) -> None:
        self._refetch, self._signal_intake = refetch, signal_intake
        self._refresher = refetch.agenda.refresher
        self._lists: set[int] | None = None  # the published lists, as they are when the first page leaves

    def __contains__(self, page: int) -> bool:
        return page in self._refresher

    # ---- to another partition

    def leave(self, pages: Sequence[int], now: float) -> list[MovedPage]:
        """Remove the pages, which another partition owns from now on. Return what is known of each."""
        copies, published_lists = self._refetch.copies.rows(pages), self._signal_intake.published_lists
        if self._lists is None:
            self._lists = published_lists.whole | self._signal_intake.signal_recorder.listed.published_lists
        found = [MovedPage(self._refresher.evidence(page), page in self._lists, copies.get(page)) for page in pages]
        for page in pages:
            self._refresher.moved(page, now)
            published_lists.have_whole(page, False)
        return found

    def outcomes(self, site: int) -> list[float]:
        return self._refresher.outcomes(site)

    def learned(self) -> list[float]:
        return self._refresher.learned()

    def inbox_position(self, sites: Container[str]) -> tuple[str, int]:
        """Return the inbox, and how far it was read for these sites. `sites`: the origins of the sites that move."""
        return self._signal_intake.inbox_position(sites)

    # ---- from another partition

    def adopt(self, pages: Sequence[int], site: int, moved: Sequence[MovedPage], now: float) -> None:
        for page, (evidence, whole, copy) in zip(pages, moved, strict=True):
            self._refresher.adopt(page, site, evidence, now)
            if whole:
                self._signal_intake.published_lists.have_whole(page, True)
            if copy is not None:
                self._refetch.adopt(page, site, copy)

    def trust(self, site: int, outcomes: Sequence[float], now: float) -> None:
        self._refresher.trust(site, outcomes, now)

    def learn(self, learned: Sequence[float], now: float) -> None:
        self._refresher.learn(learned, now)

    def continue_after(self, inbox: str, number: int, is_first: bool) -> None:
        """Continue with the inbox where a partition that handed pages over to us has stopped (`SignalIntake.continue_after`)."""
        self._signal_intake.continue_after(inbox, number, is_first)

    def wait(self, yes: bool) -> None:
        """Set whether the intake has to wait: it is not known yet which pages are ours."""
        self._signal_intake.is_paused = yes
