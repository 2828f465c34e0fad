"""`trapline recommend`: the strategy, r, k and w that fit a budget, by crawling a known graph in simulated time."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options import scheduling, simulated
from trapline.cli.options.scheduling import STRATEGIES
from trapline.cli.options.sections import Section, SectionedCommand, bundled
from trapline.cli.options.values import GRAPH_PATH, NameOrFile, count, seconds, share
from trapline.cli.simulate.arena import opened_arena
from trapline.cli.terminal.progress import compile_crawl, compile_ranks
from trapline.cli.terminal.scoreboard import web_name
from trapline.defaults import CONFIRMING_DRAWS, CONNECTIONS, STRATEGY, TRIED_PER_CONNECTION
from trapline.errors import ConfigError
from trapline.output import check_writable, write_json, write_text
from trapline.terminal import say, say_json, say_text
from trapline.units import DURATIONS, shortest

if TYPE_CHECKING:
    from trapline.graph import Graph
    from trapline.simulator.conditions import CrawlConditions
    from trapline.simulator.recommendation import CrawlBudget, CrawlSetting, Recommendation, Trials
    from trapline.strategies.base.chosen import Chosen

PAGE, JSON, SEEDS = "recommend.html", "recommend.json", "seeds.txt"
_SHOWN_URLS = 3  # seeds on the command line; more of them are in a file
_CHOSEN = ("connections", "delay_s", "per_connection")  # in the command in any case
_HTTP = {"http/1.0": "1.0", "pipelining": "pipelining"}  # --http of a crawl, by --protocol

BUDGET = Section(
    "Budget",
    (
        ("--time", "time_s", seconds(1e-3), None, "Duration of the crawl."),
        ("--pages", "pages", count(1), None, "Number of pages to fetch."),
        (
            "--connections",
            "connections",
            count(1),
            CONNECTIONS,
            "Maximum number of connections; smaller numbers are tried too. If you give a list, only its numbers are tried.",
        ),
        (
            "--sample",
            "sample",
            share(),
            1.0,
            "Share of the web's pages that GRAPH has. The simulated crawls get this share of the budget.",
        ),
    ),
).listed("connections")
_OUTPUT = Section(
    "Search and output",
    (
        (
            "--draws",
            "draws",
            count(2),
            CONFIRMING_DRAWS,
            "Repetitions, with new random servers and failures, that confirm the advice.",
        ),
        (
            "-o --output",
            "output",
            (click.Path(path_type=Path), "DIR"),
            Path("trapline-recommend"),
            "Folder to write.",
        ),
        ("--json", "as_json", None, False, "Print the result as JSON instead of a table."),
    ),
)
_CRAWL = simulated.CRAWL.without("connections", "max_pages", "max_seconds", "speed_up", "harvest_quality")
_POLITENESS = (
    scheduling.POLITENESS.listed("delay_s", "per_connection")
    .with_defaults(per_connection=TRIED_PER_CONNECTION)
    .with_texts(per_connection="Maximum pages per visit (k in the papers). [tries 1, 10 and 100]")
)
_SECTIONS = (_CRAWL, _POLITENESS, scheduling.LIMITS, *simulated.WEB_SECTIONS)


@dataclass(frozen=True, slots=True)
class AdviceRequest:
    """The budget of the user, and the values of r, k and w to try."""

    budget: "CrawlBudget"  # of the user; that of the simulated crawls is scaled to the sample
    sample: float
    connections: tuple[int, ...]

    @property
    def simulated(self) -> "CrawlBudget":
        return self.budget.of_sample(self.sample)


def _request(time_s: float | None, pages: int | None, connections: tuple[int, ...], sample: float) -> AdviceRequest:
    from trapline.simulator.recommendation import CrawlBudget

    if not sample:
        raise ConfigError(
            "--sample 0%: must be above 0; give the share of the web's pages that the graph has, such as 10%"
        )
    return AdviceRequest(CrawlBudget(time_s, pages), sample, connections)


def _given(**given: Any) -> dict[str, Any]:
    """Return the settings of all crawls, by name. Those that are lists are checked one by one when the crawls are made."""
    return {simulated.SETTINGS[field]: value for field, value in given.items()}


@click.command(cls=SectionedCommand)
@click.argument("graph", type=GRAPH_PATH, metavar="GRAPH|DIR")
@click.argument("strategies", nargs=-1, metavar="[STRATEGY]...", type=NameOrFile(STRATEGIES))
@bundled("request", _request, *(BUDGET,))
@bundled("given", _given, *_SECTIONS)
@_OUTPUT
def recommend(
    graph: Path,
    strategies: tuple[str, ...],
    request: AdviceRequest,
    given: dict[str, Any],
    draws: int,
    output: Path,
    as_json: bool,
) -> None:
    """Recommend a strategy, a number of connections (r) and pages per visit (k) for a budget of time, pages or both.

    GRAPH|DIR is what you know of the web: a graph, or the folder of a crawl. The command crawls it in simulated time with all strategies,
    or with each STRATEGY that you name, and compares how much PageRank they fetch within the budget. With --time, the command also varies
    r and k. The delay stays at 15 s unless you give --delay, because a shorter delay is less polite. --connections, --delay and
    --per-connection accept lists of values to try.

    Prints the advice and the `trapline crawl` command that follows it. Writes recommend.html, recommend.json and the seeds. A TIME is in
    seconds or has a unit: 250ms, 2min, 1h. A SHARE is 0.05 or 5%. Defaults are in brackets.
    """
    from trapline.simulator.recommendation import TriedConditions
    from trapline.simulator.recommendation import recommend as search

    _check_folder(output)
    plans = TriedConditions.of(request.budget, request.connections, given)
    every = _candidates(strategies, plans.default)
    references = [_chosen(name, plans.default) for name in (STRATEGY, "breadth-first")]
    compile_ranks([*every, *references])
    compile_crawl()
    arena = opened_arena(graph, plans.default)
    default, first = (plans.setting(chosen) for chosen in references)
    found = search(arena, request.simulated, plans.settings(every), default, first, draws)
    _close(found, arena.web, graph, request, output, as_json)


def _candidates(names: Sequence[str], conditions: "CrawlConditions") -> "list[Chosen]":
    from trapline.api.simulation import chosen_strategies
    from trapline.simulator.recommendation import live_only

    for name in names:
        _check_needs(name, conditions.quality)
    every = chosen_strategies(names, conditions)
    found = live_only(every)
    if names and len(found) < len(every):
        wrong = next(chosen.name for chosen in every if chosen not in found)
        raise ConfigError(f"{wrong} knows the PageRank of pages that are not fetched yet, as no crawl does; omit it")
    return found


def _check_needs(name: str, quality: str) -> None:
    """Refuse a strategy whose inputs come from options that this command does not have."""
    from trapline.strategies.base.chosen import named
    from trapline.strategies.base.inputs import with_quality

    inputs = with_quality(named(name).strategy, quality).page.inputs
    history = any(one.startswith("history") for one in inputs)
    if history or {"quality", "fetched_quality"}.intersection(inputs):
        needed = "an older crawl" if history else "the quality of pages, such as scores of their content"
        raise ConfigError(
            f"{name} needs {needed}, which trapline recommend does not have; choose another strategy, or use trapline compare"
        )


def _chosen(name: str, conditions: "CrawlConditions") -> "Chosen":
    from trapline.strategies.base.chosen import named, ready

    return ready(named(name), conditions.quality, history=False)


# ---- The results: shown as sentences and a table, written as HTML and JSON.


def _check_folder(folder: Path) -> None:
    """Create the folder, and check before the search that the files can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror or error}; choose another folder: -o DIR") from error
    for name in (PAGE, JSON, SEEDS):
        if (folder / name).is_file() and not (folder / JSON).is_file():
            raise ConfigError(f"{folder / name} exists and is not from a recommendation; choose another folder: -o DIR")
        check_writable(folder / name)


def _close(
    found: "Recommendation", web: "Graph", graph: Path, request: AdviceRequest, folder: Path, as_json: bool
) -> None:
    """Write and show the results."""
    from trapline.report import recommendation_page as page

    command = crawl_command(found.advised.setting, request, _seeds(found.advised.setting, web, folder), web.pages)
    servers = found.advised.setting.conditions.world.model
    why = page.grounds(found, web.pages, web.sites, servers, request.sample)
    result = _for_machines(found, graph, request, command, why)
    write_json(folder / JSON, result)
    title, subtitle = f"How to crawl {web_name(graph)}", f"Budget: {page.budget_text(request.budget)}"
    settings = simulated.options_of(found.default.setting.conditions)
    write_text(folder / PAGE, page.recommendation_page(found, title, subtitle, command, why, settings))
    say(f"wrote {folder / PAGE} and {JSON}", err=True)
    if as_json:
        say_json(result)
        return
    say_text(f"{page.recommendation_table(found)}\n\n{' '.join(page.advice(found))}\n\n    {command}\n")
    say_text("\n".join(f"- {sentence}" for sentence in (page.how_compared(found), *why)))


def _seeds(setting: "CrawlSetting", web: "Graph", folder: Path) -> list[str]:
    """Return the seeds as arguments of a crawl; if they are many, write them to a file."""
    given = setting.conditions.seeds
    if isinstance(given, Path):
        return ["--seeds", str(given)]
    if web.urls is None:
        return ["URL"]
    urls = [str(web.urls[int(page)]) for page in web.home]
    if len(urls) <= _SHOWN_URLS:
        return urls
    write_text(folder / SEEDS, "\n".join((*urls, "")))
    return ["--seeds", str(folder / SEEDS)]


def crawl_command(setting: "CrawlSetting", request: AdviceRequest, seeds: Sequence[str], pages: int) -> str:
    """Return the command that crawls by the advice, with the whole budget of the user. `pages`: in the graph."""
    conditions, budget, chosen = setting.conditions, request.budget, setting.chosen
    strategy = (
        str(chosen.files[0]) if len(chosen.files) == 1 and chosen.strategy.name else chosen.name.replace(" x ", "+")
    )
    options = {
        "--strategy": strategy,
        "--connections": str(conditions.connections),
        "--per-connection": str(conditions.rules.per_connection),
        "--delay": shortest(conditions.rules.delay_s, DURATIONS),
        **_other_rules(conditions),
        **_bandwidth(conditions),
        "--http": _HTTP.get(conditions.world.protocol),
        **_scorings(setting, round(pages / request.sample)),
        "--max-pages": None if budget.pages is None else str(budget.pages),
        "--max-time": None if budget.time_s is None else shortest(budget.time_s, DURATIONS),
        "--output": "crawl",
    }
    typed = (word for flag, value in options.items() if value is not None for word in (flag, value))
    return shlex.join(("trapline", "crawl", *seeds, *typed))


def _other_rules(conditions: "CrawlConditions") -> dict[str, str]:
    """Return the options of the crawl that the user changed."""
    usual = simulated.options_of(_defaults(conditions))
    typed = simulated.options_of(conditions)
    flags = [*scheduling.POLITENESS.without(*_CHOSEN).flags, *scheduling.LIMITS.flags, "--pause"]
    return {flag: typed[flag] for flag in flags if typed.get(flag) not in (None, usual.get(flag))}


def _bandwidth(conditions: "CrawlConditions") -> dict[str, str]:
    """Return the limit of bandwidth, if the user gave one. A crawl has one connection to a site, so a limit of each connection is that
    of a site."""
    typed = simulated.options_of(conditions).get("--bandwidth")
    flag = "--site-bandwidth" if conditions.world.bandwidth_per == "connection" else "--bandwidth"
    return {} if typed is None else {flag: typed}


def _scorings(setting: "CrawlSetting", pages: int) -> dict[str, str]:
    """Return how often the strategy computes PageRank, if it does: a live crawl, which does not know its pages, has another default."""
    from trapline.strategies.base.inputs import default_rules

    page = setting.chosen.strategy.page
    if not page.scores:
        return {}
    rules = default_rules(setting.chosen.strategy, setting.conditions.rules, pages)
    return {"--batch": str(rules.batch)} if page.batched else {"--rescore": str(rules.rescore)}


def _defaults(conditions: "CrawlConditions") -> "CrawlConditions":
    from trapline.simulator.settings import SimulationSettings

    return SimulationSettings(delay=conditions.rules.delay_s).conditions()


def _for_machines(
    found: "Recommendation", graph: Path, request: AdviceRequest, command: str, why: Sequence[str]
) -> dict[str, Any]:
    from trapline import __version__
    from trapline.report.recommendation_page import advice

    def numbers(trials: "Trials") -> dict[str, Any]:
        conditions = trials.setting.conditions
        return {
            "strategy": trials.setting.chosen.name,
            "connections": conditions.connections,
            "per_connection": conditions.rules.per_connection,
            "delay": conditions.rules.delay_s,
            "pagerank": asdict(trials.share),
            "gain_over_default": asdict(trials.gain_over(found.default)),
            "gain_over_breadth_first": asdict(trials.gain_over(found.breadth_first)),
            "pages": sum(trials.pages) / len(trials.pages),
            "seconds": sum(trials.seconds) / len(trials.seconds),
            "pagerank_by_draw": trials.shares,
        }

    return {
        "trapline": __version__,
        "graph": web_name(graph),
        "budget": asdict(request.budget) | {"sample": request.sample},
        "parameters": found.default.setting.conditions.parameters(),
        "advice": " ".join(advice(found)),
        "command": command,
        "rests_on": list(why),
        "keeps_default": found.keeps_default,
        "recommended": numbers(found.advised),
        "default": numbers(found.default),
        "breadth_first": numbers(found.breadth_first),
        "best": [numbers(trials) for trials in found.best],
        "settings": found.settings,
        "crawls": found.crawls,
    }
