"""`cho`: Parallel Crawlers, by Cho and Garcia-Molina. Its experiments, on any graph, in simulated time; each is a file, `cho_*.py`.

What is claimed is in the paper's text. Our copy has lost its digits: numbers that come from elsewhere say so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trapline.experiments import cho_communication, cho_coverage, cho_modes, cho_overlap, cho_quality, cho_regions
from trapline.experiments.charts import Experiment
from trapline.experiments.cho_study import Scale, Study, Tell
from trapline.experiments.cho_web import CrawledWeb

_EVERY = (cho_coverage, cho_overlap, cho_communication, cho_quality, cho_modes, cho_regions)


@dataclass(frozen=True, slots=True)
class Reproduction:
    web: CrawledWeb
    draws: int
    experiments: list[Experiment]


def reproduce(web: CrawledWeb, draws: int, scale: Scale, numbers: Sequence[int], tell: Tell) -> Reproduction:
    """The experiments of these numbers. `tell` hears how many are done, of how many, and what is being crawled."""
    study = Study(web, draws, scale, tell, len(numbers))
    found = []
    for number, module in enumerate(_EVERY, 1):
        if number in numbers:
            found.append(module.experiment(study))
            study.passed()
    tell(len(numbers), len(numbers), "experiments")
    return Reproduction(web, draws, found)
