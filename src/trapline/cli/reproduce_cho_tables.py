"""The experiments with parallel crawls on the terminal: a table a chart, and below it what is claimed, each with a verdict."""

from typing import TYPE_CHECKING

from trapline.terminal import say, say_text
from trapline.units import counted

if TYPE_CHECKING:
    from trapline.experiments.charts import Chart, Experiment
    from trapline.experiments.cho import Reproduction

_LEAST_WIDTH = 17


def show(found: "Reproduction") -> None:
    graph = found.web.graph
    size = f"{counted(graph.pages, 'page')}, {counted(graph.links, 'link')}, {counted(graph.sites, 'site')}"
    say_text(f"{found.web.name}: {size}; {counted(found.draws, 'draw')} of the seeds\n")
    for experiment in found.experiments:
        _show_experiment(experiment)


def _show_experiment(experiment: "Experiment") -> None:
    say(f"Experiment {experiment.number}. {experiment.title}")
    for chart in experiment.charts:
        _show_chart(chart)
    for one in experiment.verdicts:
        say(f"  {one.judged.verdict:14} {one.claim} ({one.judged.why})")
    for note in experiment.notes:
        say(f"  ({note})")
    say("")


def _show_chart(chart: "Chart") -> None:
    """A row an x; two blanks or more between columns."""
    from trapline.refresh import estimate

    widths = [
        max(_LEAST_WIDTH, len(name) + 2, *(len(str(estimate(one))) + 2 for one in curve.values()))
        for name, curve in chart.curves.items()
    ]
    first = max([len(chart.x_label), *(len(chart.x_name(x)) for x in chart.x_values)])
    say(f"  {chart.name}. {chart.title}: {chart.y_label}")
    heads = "".join(f"{name:>{width}}" for name, width in zip(chart.curves, widths, strict=True))
    say(f"  {chart.x_label:{first}}{heads}")
    for x in chart.x_values:
        cells = [str(estimate(curve[x])) if x in curve else "-" for curve in chart.curves.values()]
        row = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        say(f"  {chart.x_name(x):{first}}{row}")
    say("")
