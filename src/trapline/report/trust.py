"""How far each site's channels are believed, in numbers for people: as the last commit left it.

It looks into what a crawl's refresher has learned and changes nothing; the formulas are those of refresh/policies/trust.py. For
the report, `explain` and benchmarks.
"""

from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawl.options import RefreshOptions
from trapline.crawl.resume import refresher_of
from trapline.crawl.store.reading import Reading
from trapline.refresh.layout import View
from trapline.refresh.policies.trust import MISSED, believed, is_struck_out, kept_share, precision_of
from trapline.refresh.refresher import Refresher
from trapline.signals.inbox import CHANNELS


class Trust(NamedTuple):
    """In one channel of one site. Outcomes are forgotten slowly, so that none of these numbers is a whole one."""

    site: int
    channel: str
    verified: bool  # its senders have proved that the site is theirs
    heard: int  # signals
    judged_by: float  # crawls that came after exactly one of its signals
    confirmed: float  # and found something new
    precision: float  # the share of its signals that is expected to be true
    recall: float  # the share of updates that it is expected to tell
    struck_out: bool  # its signals count as nothing
    promised: float  # moments that it published and that have passed, by their probabilities
    kept: float  # those of them at which there was an update
    kept_share: float  # the share of such moments that is expected to be kept

    @property
    def is_judged(self) -> bool:
        """Whether anything that it told was ever put to the test; else what is believed of it is a first guess."""
        return self.judged_by > 0.0 or self.promised > 0.0

    @property
    def outcomes(self) -> tuple[float, float, float]:
        """By how much it is judged, how much of that was right, and the share expected to be: of its signals, or, if none of them was
        put to the test, of the moments that it published."""
        by_signals = self.judged_by > 0.0 or not self.promised
        return (self.judged_by, self.confirmed, self.precision) if by_signals else self[-3:]


def trust_of(refresher: Refresher) -> list[Trust]:
    """Site by site, channel by channel."""
    view = View(*refresher.memory.state[: len(View._fields)])
    rows = range(1, int(view.run[0].rows))
    return sorted(_trust(view, row) for row in rows if view.trust[row].site >= 0)


def trust_now(folder: Path, told: RefreshOptions) -> list[Trust]:
    """As the last commit of the crawl left it."""
    reading = Reading(folder)
    refresher = refresher_of(reading, told)
    reading.close()
    return trust_of(refresher)


def _trust(view: View, row: int) -> Trust:
    one: Any = view.trust[row]
    up: Any = view.trust[one.parent]
    odds = believed(one.surprises, one.expected, up.surprises, up.expected, MISSED)
    return Trust(
        site=int(one.site),
        channel=CHANNELS[one.channel] if one.channel < len(CHANNELS) else f"channel {one.channel}",
        verified=not one.unverified,
        heard=int(one.heard),
        judged_by=float(one.prompted),
        confirmed=float(one.confirmed),
        precision=float(precision_of(view, row)),
        recall=float(1.0 / (1.0 + odds)),
        struck_out=bool(is_struck_out(view, row)),
        promised=float(one.promised),
        kept=float(one.kept),
        kept_share=float(kept_share(view, row)),
    )
