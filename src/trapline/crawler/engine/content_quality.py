"""The quality of pages from their content: fetched pages go to the scorer, and what it says goes to the frontier and the store.

The scorer is a process (crawler/quality/). A score arrives some time after its page was reported; the pages that it links to are
then ranked again (`Frontier.set_quality`), if the page rank reads the quality of fetched pages. The score is stored with the next
batch. After a kill, pages without a score are scored by the next run.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np

from trapline.crawler.engine.crawl_events import CrawlEvents
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_stream import PageDetails, StreamedFetch
from trapline.crawler.engine.records import Fetched
from trapline.crawler.engine.tally import CrawlTally
from trapline.crawler.files.layout import SCORER_FAILURES
from trapline.crawler.files.reading import Reading
from trapline.crawler.quality.scorer_pool import Scored, ScorerPool
from trapline.crawler.quality.unscored import unscored_in
from trapline.crawler.store.outbox import Outbox
from trapline.frontier import Frontier
from trapline.frontier.layout import Array


class ContentQuality:
    def __init__(
        self,
        frontier: Frontier,
        outbox: Outbox,
        tally: CrawlTally,
        events: CrawlEvents,
        now: Callable[[], float],
        run: int,
        on_room: Callable[[], None],
        on_failure: Callable[[str], None],
        failures: int = 0,
    ) -> None:
        """`run`: the number of this run of the crawl. `on_room`, `on_failure`: as for `ScorerPool`. `failures`: number of pages on which
        the scorer failed in earlier runs."""
        self._frontier, self._outbox, self._tally, self._events = frontier, outbox, tally, events
        self._now, self._run = now, run
        self._is_ranked = "fetched_quality" in frontier.strategy.page.inputs
        self._failures = failures
        self.pool = ScorerPool(self._scored, on_room, on_failure)

    async def start(self, options: CrawlOptions, folder: Path | None) -> None:
        """Start the scorer, also for the pages of earlier runs without a score. Raise `ConfigError` if there is no such scorer."""
        unscored = unscored_in(folder, options) if folder is not None else None
        await self.pool.start(options.quality, options.modules, options.quality_processes, unscored)

    def fetched(self, record: Fetched, details: PageDetails, links: Array) -> None:
        """Take a page that was fetched for the first time. `links`: the pages of this partition that it links to."""
        depth = int(self._frontier.page_depths[record.page])
        page = StreamedFetch(record._replace(links=links.tobytes()), details, depth, "", record.url, 0)
        self.pool.put(page)

    def _scored(self, fetch: StreamedFetch, scored: Scored) -> None:
        page, links = fetch.record.page, np.frombuffer(fetch.record.links, "<i4").astype(np.int32)
        if scored.error:
            self._events.scorer_error(fetch.record.url, scored.error)
            self._failures += 1
            self._outbox.meta[SCORER_FAILURES] = str(self._failures)
        if self._is_ranked:
            self._frontier.set_quality(page, scored.score, links, self._now())
        self._tally.quality += scored.score
        self._outbox.qualities.append((page, self._run, scored.score))


def run_number(folder: Path | None) -> int:
    """Return the number of the run that has begun in this folder; 1 without a folder."""
    return 1 if folder is None else int(_meta(folder)["runs"])


def failures_before(folder: Path | None) -> int:
    """Return the number of pages on which the scorer failed in the earlier runs."""
    return 0 if folder is None else int(_meta(folder).get(SCORER_FAILURES, 0))


def _meta(folder: Path) -> dict[str, str]:
    with closing(Reading(folder)) as reading:
        return reading.meta()
