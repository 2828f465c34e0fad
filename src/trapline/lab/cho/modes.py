"""Experiment 5 of `cho`: the strengths of each mode, compared with the paper's table, and the paper's two conclusions.

Coverage and overlap are measured at the end of a crawl (cross-over: after three times as many fetches as there are pages).
Quality and communication are measured after the first fifth of the pages, ordered by backlinks.
"""

from collections.abc import Mapping

import numpy as np

from trapline.graph.strings import stored
from trapline.lab.cho.crawled_web import Setting
from trapline.lab.cho.measures import (
    PUBLISHED,
    ChoStudy,
    Curve,
    Measure,
    Measured,
    coverage,
    item,
    overlap,
    quality,
    sent,
    sent_at_once,
    times,
)
from trapline.lab.cho.overlap import setting as crossing
from trapline.lab.cho.quality import LARGE, ORDER, SIZES
from trapline.lab.paper import PaperClaim, PaperItem, Values, at_least, at_most, differences
from trapline.parallel.simulated.planning import BYTES_PER_URL

MODES = ("firewall", "cross-over", "exchange")
MEASURES: Mapping[str, Measure] = {
    "coverage": coverage,
    "overlap": overlap,
    "quality": quality,
    "communication": sent_at_once,
}
# Table 2 of the paper. In our copy only the word "bad" survives of its cells: twice for firewall, twice for cross-over, once for
# exchange. The text around the table says which measures these are.
BAD = {"firewall": ("coverage", "quality"), "cross-over": ("overlap", "quality"), "exchange": ("communication",)}
# The cells that a crawl can contradict. The others follow from what a mode is: firewall and cross-over send nothing, firewall and
# exchange fetch no page twice, and exchange reaches what one process reaches and sends URLs.
JUDGED = (
    *(("firewall", "coverage"), ("firewall", "quality")),
    *(("cross-over", "coverage"), ("cross-over", "overlap"), ("cross-over", "quality")),
    ("exchange", "quality"),
)
ALONE = "one process"
PARTITIONS, CLOSE = (
    4,
    0.01,
)  # a "small number" of partitions; margin of "good" and "bad" from one process with the same seeds
BANDWIDTH = 0.01  # "exchange < 1 % of bandwidth": published, to the best of our knowledge
# From the paper, to the best of our knowledge; used if the graph has no sizes or URLs
PAGE_BYTES, URL_BYTES = 10_000.0, 40.0


def experiment(study: ChoStudy) -> PaperItem:
    """Run the experiment."""
    found = {mode: {name: _values(study, mode, name) for name in MEASURES} for mode in (*MODES, ALONE)}
    curves: dict[str, Curve] = {
        mode: {float(at): values for at, values in enumerate(by_name.values())} for mode, by_name in found.items()
    }
    names = {float(at): name for at, name in enumerate(MEASURES)}
    chart = Measured("5", f"Modes, {PARTITIONS} partitions", "measure", "value", curves, names, apart=True)
    claims = [_judged(found, mode, name) for mode, name in JUDGED]
    claims += [_enough(found), _cheap(study), _cheaper(study)]
    return item(5, "Which mode when", study, [chart], claims, _notes(study))


def _values(study: ChoStudy, mode: str, name: str) -> Values:
    of_whole_crawl = name in ("coverage", "overlap")
    if mode == "cross-over" and of_whole_crawl:
        return study.values(crossing(study, mode, PARTITIONS), MEASURES[name])
    part = None if of_whole_crawl else max(1, study.pages // SIZES[LARGE])
    order = "breadth-first" if of_whole_crawl else ORDER
    setting = Setting("firewall" if mode == ALONE else mode, PARTITIONS, strategy=order, most=part)
    return study.values(setting.alone if mode == ALONE else setting, MEASURES[name])


def _judged(found: Mapping[str, Mapping[str, Values]], mode: str, name: str) -> PaperClaim:
    """Judge a cell of the table. Good: as good as one process with the same seeds. Bad: worse by more than the margin."""
    behind = differences(found[ALONE][name], found[mode][name])
    if name == "overlap":
        behind = times(behind, -1.0)  # less is better
    if name in BAD[mode]:
        return at_least(
            f"{mode.capitalize()}: bad {name}, worse than one process by over {CLOSE:g}", "bad", behind, CLOSE
        )
    ahead = times(behind, -1.0)
    return at_least(f"{mode.capitalize()}: good {name}, at most {CLOSE:g} behind one process", "good", ahead, -CLOSE)


def _enough(found: Mapping[str, Mapping[str, Values]]) -> PaperClaim:
    text = f"Firewall is enough for {PARTITIONS} partitions: at most 0.1 less coverage than exchange"
    return at_most(
        text, f"enough ({PUBLISHED})", differences(found["exchange"]["coverage"], found["firewall"]["coverage"]), 0.1
    )


def _cheap(study: ChoStudy) -> PaperClaim:
    """Judge the cost of exchange with 64 partitions if each link is sent when it is found: the most that exchange can cost."""
    per_url, per_page = url_bytes(study), page_bytes(study)
    spent = study.values(Setting("exchange", 64), lambda found: found.sent_at_once * per_url / per_page)
    text = (
        f"Exchange between 64 partitions takes under {BANDWIDTH:.0%} of the page bytes, every link sent at once as text"
    )
    return at_least(text, f"< 1 % ({PUBLISHED})", [BANDWIDTH - value for value in spent])


def _cheaper(study: ChoStudy) -> PaperClaim:
    """Judge the cost of exchange with 64 partitions if URLs are sent as Trapline sends them, in batches."""
    per_page = page_bytes(study)
    spent = study.values(Setting("exchange", 64), lambda found: sent(found) * BYTES_PER_URL / per_page)
    text = f"Exchange between 64 partitions takes under {BANDWIDTH:.0%}, in batches of {BYTES_PER_URL:g} bytes per URL"
    return at_least(text, f"< 1 % ({PUBLISHED})", [BANDWIDTH - value for value in spent])


def url_bytes(study: ChoStudy) -> float:
    """Return the mean size of a URL of the graph."""
    urls = study.web.graph.urls
    return URL_BYTES if urls is None else len(stored(urls).text) / study.pages


def page_bytes(study: ChoStudy) -> float:
    """Return the mean size of a page of the graph."""
    sizes = study.web.graph.sizes
    return PAGE_BYTES if sizes is None else float(np.mean(sizes))


def _notes(study: ChoStudy) -> list[str]:
    graph = study.web.graph
    sources = [("URL", url_bytes(study), graph.urls is None), ("page", page_bytes(study), graph.sizes is None)]
    sizes = [
        f"{size:,.0f} bytes per {unit} ({'assumed' if assumed else 'mean of the graph'})"
        for unit, size, assumed in sources
    ]
    return [
        "Not judged, because it follows from what the modes are: no overlap in firewall and exchange mode, nothing sent in firewall and "
        "cross-over mode, URLs sent in exchange mode, and the coverage of exchange mode, which is that of one process.",
        f"{', '.join(sizes)}; in batches a URL takes {BYTES_PER_URL:g} bytes, measured by bench/exchange.py.",
    ]
