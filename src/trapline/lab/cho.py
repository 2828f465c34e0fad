"""`cho`: the experiments of Parallel Crawlers, by Cho and Garcia-Molina, on any graph, in simulated time. Each is a file,
`cho_*.py`.

The claims are from the paper's text. Our copy of the paper has lost its digits: a number from another source says so.
"""

from collections.abc import Sequence

from trapline.lab import cho_communication, cho_coverage, cho_modes, cho_overlap, cho_quality, cho_regions
from trapline.lab.cho_study import Scale, part
from trapline.lab.cho_web import CrawledWeb
from trapline.lab.paper import PaperPlan

TITLE = "Cho and Garcia-Molina: Parallel Crawlers"
EXPERIMENTS = (cho_coverage, cho_overlap, cho_communication, cho_quality, cho_modes, cho_regions)


def cho(webs: Sequence[CrawledWeb], draws: int, scale: Scale, numbers: Sequence[int]) -> PaperPlan:
    """Return the experiments with these numbers, on each web."""
    labels = [f"web {number}" for number in range(1, len(webs) + 1)] if len(webs) > 1 else [""]
    parts = [
        part(EXPERIMENTS[number - 1].experiment, web, draws, scale, label)
        for web, label in zip(webs, labels, strict=True)
        for number in numbers
    ]
    return PaperPlan("cho", TITLE, parts, [web.name for web in webs])
