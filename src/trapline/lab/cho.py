"""`cho`: the experiments of Parallel Crawlers, by Cho and Garcia-Molina, on any graph, in simulated time. Each is a file,
`cho_*.py`.

The claims are from the paper's text. Our copy of the paper has lost its digits: a number from another source says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trapline.lab import cho_communication, cho_coverage, cho_modes, cho_overlap, cho_quality, cho_regions
from trapline.lab.cho_web import ChoStudy, CrawledWeb, Scale
from trapline.lab.judgement import Experiment
from trapline.progress import ProgressCallback

_EVERY = (cho_coverage, cho_overlap, cho_communication, cho_quality, cho_modes, cho_regions)


@dataclass(frozen=True, slots=True)
class ChoReproduction:
    """The results of the experiments on one web."""

    web: CrawledWeb
    draws: int
    experiments: list[Experiment]


def reproduce(
    web: CrawledWeb, draws: int, scale: Scale, numbers: Sequence[int], progress: ProgressCallback
) -> ChoReproduction:
    """Run the experiments with these numbers. `progress` receives the number of experiments done, their total, and the
    present crawl."""
    study = ChoStudy(web, draws, scale, progress, len(numbers))
    experiments = []
    for number, module in enumerate(_EVERY, 1):
        if number in numbers:
            experiments.append(module.experiment(study))
            study.passed()
    progress(len(numbers), len(numbers), "experiments")
    return ChoReproduction(web, draws, experiments)
