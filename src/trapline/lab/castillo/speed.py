"""Speed in `castillo` and `thesis`: the speed-up by connections and bandwidth, and the time of a page.

The papers do not say whether the bandwidth is that of the link or that of each connection, and neither can give all published
numbers. Both are run. Only the first part of a crawl counts, because a whole crawl ends at its largest site.
"""

from collections.abc import Sequence

from trapline.lab.paper import (
    PaperChart,
    PaperClaim,
    PaperItem,
    PaperPart,
    PaperTable,
    Results,
    at_least,
    differences,
    every,
)
from trapline.lab.simulated import (
    TIMES_S,
    OrderCrawl,
    mean_and_spread,
    mean_curve,
    page_time_key,
    page_time_run,
    speed_key,
    speed_run,
)
from trapline.lab.webs import WebCache, WebSource

# castillo04, table I, and thesis, table 4.2: speed-up of larger-sites-first by bytes per second. The first two values for r = 1 are
# the thesis'; castillo04 prints 6.3 and 1.5.
BANDWIDTHS = (200.0, 2e3, 2e4, 2e5, 2e6, 2e7)
SPEED_UPS = {
    1: (0.2, 0.7, 1.0, 1.0, 1.0, 1.0),
    64: (1.6, 3.8, 27.0, 43.0, 54.3, 54.6),
    256: (3.0, 16.0, 83.3, 114.1, 204.3, 220.1),
}
CONNECTIONS = tuple(SPEED_UPS)
PART = 0.1  # share of the pages that are fetched
READINGS = {"link": "the link is shared by all connections", "connection": "each connection has the bandwidth B"}
_REFERENCE = OrderCrawl("larger-sites-first", servers="measured", share=PART)


def speed_up(name: str, per: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    """Return the part on the speed-up. `per`: a key of READINGS."""
    crawls = {
        (r, b): OrderCrawl("larger-sites-first", r, bandwidth=b, bandwidth_per=per, servers="measured", share=PART)
        for r in CONNECTIONS
        for b in BANDWIDTHS
    }

    def items(results: Results) -> list[PaperItem]:
        def rates(crawl: OrderCrawl) -> list[float]:
            return [float(results[speed_key(web, crawl)]["pages_per_second"]) for web in webs]

        alone = rates(_REFERENCE)
        found = {key: [a / b for a, b in zip(rates(crawl), alone, strict=True)] for key, crawl in crawls.items()}
        setting = (
            f"larger-sites-first, w = 15 s, k = 1, measured servers, the first {PART:.0%} of the pages; {READINGS[per]}"
        )
        title, claims = f"Speed-up, B per {per}", _speed_claims(found)
        return [PaperItem(name, title, setting, claims, [_speed_table(found)], [_speed_chart(per, found)])]

    return PaperPart([speed_run(cache, web, crawl) for web in webs for crawl in (_REFERENCE, *crawls.values())], items)


SpeedUps = dict[tuple[int, float], list[float]]  # by connections and bandwidth, one value per web


def _speed_table(found: SpeedUps) -> PaperTable:
    head = ["B, bytes/s", *(text for r in CONNECTIONS for text in (f"r = {r}, published", "ours"))]
    rows = [
        [
            f"{b:,.0f}",
            *(text for r in CONNECTIONS for text in (f"{SPEED_UPS[r][at]:g}", mean_and_spread(found[r, b], 2))),
        ]
        for at, b in enumerate(BANDWIDTHS)
    ]
    return PaperTable("Speed-up over one connection on an unlimited link", head, rows)


def _speed_chart(per: str, found: SpeedUps) -> PaperChart:
    x = [float(at) for at in range(len(BANDWIDTHS))]
    ours = {f"r = {r}": (x, mean_curve([found[r, b] for b in BANDWIDTHS], axis=1)) for r in CONNECTIONS}
    published = {f"r = {r}, published": (x, list(SPEED_UPS[r])) for r in CONNECTIONS[1:]}
    title = f"Speed-up, {READINGS[per]}"
    names = [f"{b:,.0f}" for b in BANDWIDTHS]
    return PaperChart(f"speed-up-{per}", title, "bytes per second", "speed-up", {**ours, **published}, x_names=names)


def _speed_claims(found: SpeedUps) -> list[PaperClaim]:
    faster = {f"{b:,.0f}": at_least("", "", differences(found[256, b], found[64, b])) for b in BANDWIDTHS}
    fast = BANDWIDTHS[-1]
    below = {f"r = {r}": at_least("", "", [1 - x / r for x in found[r, fast]]) for r in CONNECTIONS[1:]}
    saturated = [b / a - 1 for a, b in zip(found[256, BANDWIDTHS[-2]], found[256, fast], strict=True)]
    return [
        every("256 connections are faster than 64 at every bandwidth, in bytes/s", "yes", faster),
        every(
            "The speed-up is less than the number of connections, as a share of it", "54.6 of 64; 220.1 of 256", below
        ),
        at_least(
            "Bandwidth saturates: from 2 MB/s to 20 MB/s r = 256 gains less than a tenth",
            "204 to 220",
            [0.1 - x for x in saturated],
        ),
    ]


# ---- t. fig. 4.2: the time of a page

PAGE_TIMES = {1.5: 0.90, 3.0: 0.95}  # seconds: share of the pages that take less


def page_time(name: str, cache: WebCache, webs: Sequence[WebSource]) -> PaperPart:
    def items(results: Results) -> list[PaperItem]:
        found = [results[page_time_key(web)] for web in webs]

        def shares(seconds: float) -> list[float]:
            return [float(one["shares"][TIMES_S.index(seconds)]) for one in found]

        claims = [
            at_least(f"{share:.0%} of the pages take less than {s:g} s", f"{share:.0%}", shares(s), share)
            for s, share in PAGE_TIMES.items()
        ]
        waiting = [float(one["mostly_waiting"]) - 0.5 for one in found]
        claims.append(
            at_least("Latency takes longer than the transfer, for more than half of the pages", "yes", waiting)
        )
        y = [100 * value for value in mean_curve([one["shares"] for one in found])]
        published = (list(PAGE_TIMES), [100 * share for share in PAGE_TIMES.values()])
        chart = PaperChart(
            "page-time", "Time of a page", "seconds", "pages that take less",
            {"ours": (TIMES_S, y), "published": published}, y_unit="%",
        )  # fmt: skip
        setting = "measured servers; each page on a new connection over an unlimited link"
        return [PaperItem(name, "Time of a page", setting, claims, charts=[chart])]

    return PaperPart([page_time_run(cache, web) for web in webs], items)
