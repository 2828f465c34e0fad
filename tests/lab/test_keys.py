"""A run's key says everything that decides its result: runs that are given different values have different keys."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from trapline.graph.strings import StoredStrings, decoded
from trapline.lab.cao import protocols, throughput
from trapline.lab.cao.plan import CaoWebs, cao
from trapline.lab.castillo import prediction, real_crawls
from trapline.lab.castillo.plan import CastilloWebs, castillo, thesis
from trapline.lab.paper import PaperPlan
from trapline.lab.simulated import OrderCrawl
from trapline.lab.study import StudyRun
from trapline.lab.webs import WebCache, WebSource, equal_sites, generated, recorded
from trapline.lab.xu.plan import Xu, XuTrace
from trapline.refresh import ReplayConditions, drawn_trace


def webs(reverse: bool) -> list[WebSource]:
    found = [generated(100, 10, seed) for seed in (1, 2, 3)]
    return found[::-1] if reverse else found


def cao_of(reverse: bool) -> PaperPlan:
    seeds = (3, 4) if reverse else (1, 2)
    return cao(CaoWebs(webs(reverse), webs(reverse), equal_sites(2, 5), equal_sites(2, 5), 10, seeds))


def castillo_webs(reverse: bool) -> CastilloWebs:
    return CastilloWebs(*(webs(reverse) for _ in range(5)))


PLANS: dict[str, Callable[[bool], PaperPlan]] = {
    "cao": cao_of,
    "castillo": lambda reverse: castillo(castillo_webs(reverse)),
    "thesis": lambda reverse: thesis(castillo_webs(reverse)),
}


def given(run: StudyRun) -> dict[str, Any]:
    """The values that a run computes with, except the memory of webs. A web is given by its name."""
    values = inspect.getclosurevars(run.compute).nonlocals
    return {
        name: value.name if isinstance(value, WebSource) else value
        for name, value in values.items()
        if not isinstance(value, WebCache)
    }


@pytest.mark.parametrize("name", PLANS)
def test_runs_with_the_same_key_are_given_the_same_values(name: str) -> None:
    """The same webs in another order have other servers, because the place of a web is the seed of its servers."""
    by_key: dict[str, dict[str, Any]] = {}
    for reverse in (False, True):
        for run in PLANS[name](reverse).runs():
            assert by_key.setdefault(run.key, given(run)) == given(run), run.key


@pytest.mark.parametrize(
    ("module", "constant"),
    [
        (protocols, "MODEL"),
        (protocols, "FASTER"),
        (protocols, "MAX_TRANSFER_S"),
        (protocols, "_BEFORE_TAIL"),
        (throughput, "_PROBE_LATENCY_S"),
        (throughput, "_FAST_LATENCY_S"),
        (throughput, "_FAST_SPREAD"),
        (throughput, "_FAST_REQUESTS"),
        (real_crawls, "LATENCY_S"),
        (real_crawls, "LATENCY_SPREAD"),
        (real_crawls, "DAYS"),
        (prediction, "PER_CONNECTION"),
        (prediction, "MODEL"),
        (prediction, "MAX_TRANSFER_S"),
    ],
)
def test_other_conditions_have_another_key(module: ModuleType, constant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def keys() -> set[str]:
        return {run.key for plan in PLANS.values() for run in plan(False).runs()}

    before, value = keys(), getattr(module, constant)
    monkeypatch.setattr(module, constant, "measured" if isinstance(value, str) else value / 2)
    assert keys() != before


def test_shares_of_a_crawl_that_differ_have_different_names() -> None:
    assert OrderCrawl("opic", share=1 / 3).name != OrderCrawl("opic", share=0.33).name


def test_two_graphs_of_the_same_name_and_size_have_different_names() -> None:
    graph = generated(100, 10, 1).load().graph
    assert graph.sizes is not None and graph.urls is not None and graph.site_names is not None
    others = [
        replace(graph, targets=(graph.targets + 1) % graph.pages),
        replace(graph, sizes=graph.sizes + 1),
        replace(graph, urls=StoredStrings.of([f"{url}x" for url in graph.urls])),
        replace(graph, site_names=StoredStrings.of([f"{name}x" for name in decoded(graph.site_names)])),
    ]
    names = [recorded("mine", one).name for one in (graph, *others)]
    assert names[0].startswith("mine, 100 pages, ") and len(set(names)) == len(names)
    assert names[0] == recorded("mine", graph).name


def test_numbers_of_xu_depend_on_the_accesses_of_the_calibration() -> None:
    trace = drawn_trace("bursty", 20, 600, 6.0, seed=1)
    few, many = (
        {run.key for run in Xu([XuTrace(trace, 60.0, 0.0, 2, ReplayConditions(accesses=at))], [1], ["2", "5"]).runs()}
        for at in (400, 800)
    )
    assert few and not few & many
