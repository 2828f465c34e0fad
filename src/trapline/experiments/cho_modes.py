"""Experiment 5 of `cho`: which mode is good at what, beside the paper's table, and whether its two conclusions hold.

Coverage and overlap are of crawls to their end (cross-over: until three times the pages were fetched), quality and communication of the
first fifth, ordered by backlinks.
"""

from collections.abc import Mapping

import numpy as np

from trapline.experiments.charts import Chart, Curve, Experiment, Verdict
from trapline.experiments.cho_overlap import setting as crossing
from trapline.experiments.cho_quality import LARGE, ORDER, SIZES
from trapline.experiments.cho_study import (
    PUBLISHED,
    Measure,
    Study,
    coverage,
    overlap,
    quality,
    sent,
    sent_at_once,
    times,
)
from trapline.experiments.cho_web import Setting
from trapline.experiments.judgement import Judged, Values, larger, near
from trapline.graph.strings import stored
from trapline.parallel.costs import BYTES_PER_URL

MODES = ("firewall", "cross-over", "exchange")
MEASURES: Mapping[str, Measure] = {
    "coverage": coverage,
    "overlap": overlap,
    "quality": quality,
    "communication": sent_at_once,
}
LESS_IS_BETTER = ("overlap", "communication")
# Its Table 2. Of its cells the word "bad" survives in our copy: twice for firewall, twice for cross-over, once for exchange. Which
# measures these are, the text around the table says.
BAD = {"firewall": ("coverage", "quality"), "cross-over": ("overlap", "quality"), "exchange": ("communication",)}
PARTITIONS, CLOSE = 4, 0.01  # "small number" of partitions; what "good" allows below the best
BANDWIDTH = 0.01  # "exchange < 1 % of bandwidth": published, to the best of our knowledge
PAGE_BYTES, URL_BYTES = (
    10_000.0,
    40.0,
)  # of the paper, to the best of our knowledge; where the graph has none of its own


def experiment(study: Study) -> Experiment:
    found = {mode: {name: _values(study, mode, name) for name in MEASURES} for mode in MODES}
    curves: dict[str, Curve] = {
        mode: {float(at): values for at, values in enumerate(by_name.values())} for mode, by_name in found.items()
    }
    names = {float(at): name for at, name in enumerate(MEASURES)}
    chart = Chart("5", f"Modes, {PARTITIONS} partitions", "measure", "value", curves, names, apart=True)
    verdicts = [
        Verdict(f"{mode}: {name} {'bad' if name in BAD[mode] else 'good'}", _judged(found, mode, name))
        for mode in MODES
        for name in MEASURES
    ]
    verdicts += [_enough(found), _cheap(study), _cheaper(study)]
    return Experiment(5, "Which mode when", [chart], verdicts, _notes(study))


def _values(study: Study, mode: str, name: str) -> Values:
    whole = crossing(study, mode, PARTITIONS) if mode == "cross-over" else Setting(mode, PARTITIONS)
    part = Setting(mode, PARTITIONS, strategy=ORDER, most=max(1, study.pages // SIZES[LARGE]))
    return study.values(whole if name in ("coverage", "overlap") else part, MEASURES[name])


def _judged(found: Mapping[str, Mapping[str, Values]], mode: str, name: str) -> Judged:
    """Good: as the best mode. Bad: worse than the best."""
    sign = -1.0 if name in LESS_IS_BETTER else 1.0
    best = max(MODES, key=lambda one: sign * sum(found[one][name]))
    ours, theirs = times(found[mode][name], sign), times(found[best][name], sign)
    return larger(theirs, ours) if name in BAD[mode] else near(theirs, ours, CLOSE)


def _enough(found: Mapping[str, Mapping[str, Values]]) -> Verdict:
    text = f"firewall is enough for {PARTITIONS}: coverage of exchange, to 0.1 ({PUBLISHED})"
    return Verdict(text, near(found["exchange"]["coverage"], found["firewall"]["coverage"], 0.1))


def _cheap(study: Study) -> Verdict:
    """With 64, each link sent when it is found: the most that exchange can cost."""
    per_url, per_page = url_bytes(study), page_bytes(study)
    spent = study.values(Setting("exchange", 64), lambda found: found.links_sent_at_once * per_url / per_page)
    text = f"exchange takes under {BANDWIDTH:.0%} of the page bytes, with 64, every link sent at once as text ({PUBLISHED})"
    return Verdict(text, larger([BANDWIDTH] * len(spent), spent))


def _cheaper(study: Study) -> Verdict:
    """As Trapline sends them."""
    per_page = page_bytes(study)
    spent = study.values(Setting("exchange", 64), lambda found: sent(found) * BYTES_PER_URL / per_page)
    text = f"exchange takes under {BANDWIDTH:.0%}, with 64, in batches of {BYTES_PER_URL:g} bytes a URL"
    return Verdict(text, larger([BANDWIDTH] * len(spent), spent))


def url_bytes(study: Study) -> float:
    urls = study.web.graph.urls
    return URL_BYTES if urls is None else len(stored(urls).text) / study.pages


def page_bytes(study: Study) -> float:
    sizes = study.web.graph.sizes
    return PAGE_BYTES if sizes is None else float(np.mean(sizes))


def _notes(study: Study) -> list[str]:
    graph = study.web.graph
    sources = [("URL", url_bytes(study), graph.urls is None), ("page", page_bytes(study), graph.sizes is None)]
    said = [
        f"{size:,.0f} bytes a {what} ({'assumed' if assumed else 'mean of the graph'})"
        for what, size, assumed in sources
    ]
    return [
        f"{', '.join(said)}; coded in batches a URL takes {BYTES_PER_URL:g} bytes, as measured by bench/exchange.py"
    ]
