"""The parts of a crawl that fetches pages again, put together; and taken apart when it ends."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from trapline.crawl.aside import Aside
from trapline.crawl.copies import Copies
from trapline.crawl.forbidden import Forbidden
from trapline.crawl.hearsay import Hearsay
from trapline.crawl.known import Known
from trapline.crawl.options import RefreshOptions
from trapline.crawl.outbox import Outbox
from trapline.crawl.partition import Others
from trapline.crawl.shelf import Shelf
from trapline.crawl.store.folder import DATABASE
from trapline.crawl.store.reading import Reading
from trapline.crawl.upkeep import Upkeep
from trapline.fetch.limits import Limits
from trapline.frontier import Frontier
from trapline.refresh.agenda import Agenda
from trapline.refresh.refresher import Refresher
from trapline.refresh.turns import Turns
from trapline.signals.inbox import Inbox

_BUSY_S = 0.1  # the loop does not wait for another writer


class Again:
    """`upkeep` asks for pages again, `hearsay` hears what providers tell of them."""

    def __init__(
        self,
        options: RefreshOptions,
        folder: Path,
        frontier: Frontier,
        refresher: Refresher,
        known: Known,
        outbox: Outbox,
        clock: Callable[[], float],
        shelf: Shelf,
        signals: Path | None = None,
        others: Others | None = None,
        expanded_bytes: int = Limits.expanded_bytes,
    ) -> None:
        """`signals`: the folder of signals.db, if it is another. `others`: the crawl is one of several. `expanded_bytes`: the most of a
        list without its content coding."""
        agenda = Agenda(frontier, refresher, Turns(options.share, options.price, options.rate), options.continuous)
        self.copies = Copies(folder / DATABASE)
        self._inbox, self._aside = Inbox(signals or folder, _BUSY_S), Aside(asyncio.get_running_loop())
        heard = (refresher, frontier, known, self._inbox, outbox, clock, self._aside)
        self.hearsay = Hearsay(*heard, others=others, expanded_bytes=expanded_bytes)
        reading = Reading(folder)
        self.hearsay.restore(reading)
        forbidden = Forbidden(refresher, shelf.urls, reading.forbidden())
        reading.close()
        self.upkeep = Upkeep(agenda, self.copies, outbox, forbidden, self.hearsay.whole, self.hearsay.hearing.ahead_s)

    def close(self) -> None:
        self._aside.close()
        self._inbox.close()
        self.copies.close()
