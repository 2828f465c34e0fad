"""`cho`: the experiments of Parallel Crawlers, by Cho and Garcia-Molina, on any graph, in simulated time.

The claims are from the paper's text. Our copy of the paper has lost its digits: a number from another source says so.
"""

from collections.abc import Sequence

from trapline.lab.cho import communication, coverage, modes, overlap, quality, regions
from trapline.lab.cho.crawled_web import CrawledWeb
from trapline.lab.cho.measures import Scale, part
from trapline.lab.paper import PaperPlan

TITLE = "Cho and Garcia-Molina: Parallel Crawlers"
EXPERIMENTS = (coverage, overlap, communication, quality, modes, regions)


def cho(webs: Sequence[CrawledWeb], draws: int, scale: Scale, numbers: Sequence[int]) -> PaperPlan:
    """Return the experiments with these numbers, on each web."""
    labels = [f"web {number}" for number in range(1, len(webs) + 1)] if len(webs) > 1 else [""]
    parts = [
        part(EXPERIMENTS[number - 1].experiment, web, draws, scale, label)
        for web, label in zip(webs, labels, strict=True)
        for number in numbers
    ]
    return PaperPlan("cho", TITLE, parts, [web.name for web in webs])
