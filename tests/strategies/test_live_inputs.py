"""A page gets the same input values in a live crawl, which asks by URL, as on a graph, where all URLs are known."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ConfigError
from trapline.fetch.urls import canonical
from trapline.graph import Graph, generate, pagerank
from trapline.graph.formats.saved import save
from trapline.graph.strings import decoded
from trapline.strategies import Strategy, load_strategy, pair
from trapline.strategies.base.inputs import history_values, inputs_for, quality_values
from trapline.strategies.base.live_inputs import Values, live_inputs, quality_of

HISTORICAL = ["historical-pagerank-" + name for name in ("omniscient", "random", "zero", "parent")]


@pytest.fixture(scope="module")
def web() -> Graph:
    return generate(200, 12, seed=8)


@pytest.fixture(scope="module")
def urls(web: Graph) -> list[str]:
    assert web.urls is not None
    return list(decoded(web.urls))


def live(
    strategy: Strategy, quality: Values | None = None, history: Path | None = None, seed: int = 0
) -> dict[str, Values]:
    return live_inputs(strategy, quality, history, seed, canonical, pagerank)


def same(ours: dict[str, Values], theirs: dict[str, np.ndarray], urls: list[str]) -> None:
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        found = [value for at in range(0, len(urls), 7) for value in ours[name](urls[at : at + 7])]
        assert found == values.tolist(), name


@pytest.fixture
def file(tmp_path: Path, urls: list[str]) -> Path:
    """Values of some pages, and of one that is in no graph."""
    chosen = urls[::2]
    values = np.random.default_rng(1).random(len(chosen)).tolist()
    text = "".join(f"{url}\t{value!r}\n" for url, value in zip(chosen, values, strict=True))
    (tmp_path / "values").write_text(text + "http://gone.org/\t0.5\n")
    return tmp_path / "values"


# ---- history


@pytest.mark.parametrize("seed", [0, 7, -1])
@pytest.mark.parametrize("name", HISTORICAL)
def test_history_from_a_file(web: Graph, urls: list[str], file: Path, name: str, seed: int) -> None:
    strategy = load_strategy(name)
    history = history_values(file, web, pagerank)
    theirs = inputs_for(strategy, web, np.ones(web.pages), None, history, seed)
    same(live(strategy, lambda urls: [1.0] * len(urls), file, seed), theirs, urls)


def test_history_from_a_graph(web: Graph, urls: list[str], tmp_path: Path) -> None:
    save(generate(150, 12, seed=8), tmp_path / "old")
    history = history_values(tmp_path / "old", web, pagerank)
    strategy = load_strategy("historical-pagerank-random")
    same(
        live(strategy, history=tmp_path / "old"), inputs_for(strategy, web, np.zeros(web.pages), None, history, 0), urls
    )


def test_an_invalid_history_is_reported(tmp_path: Path) -> None:
    strategy = load_strategy("historical-pagerank-random")
    with pytest.raises(ConfigError, match="--history"):
        live(strategy)
    (tmp_path / "below").write_text("http://a.org/ 0.5\nhttp://b.org/ -2\n")
    with pytest.raises(ConfigError, match=r"http://b.org/' is -2; it must be at least 0"):
        live(strategy, history=tmp_path / "below")


# ---- quality


def test_quality_from_a_file(web: Graph, urls: list[str], file: Path) -> None:
    strategy = load_strategy("omniscient")
    theirs = quality_values(str(file), web, np.zeros(web.pages), 0)
    assert theirs is not None
    ours = live(pair("quality", "fifo"), quality_of(str(file), 0, canonical))
    same(ours, {"quality": theirs}, urls)
    assert live(strategy, quality_of(str(file), 0, canonical))["pagerank"](urls) == theirs.tolist()


def test_urls_in_a_file_are_compared_as_the_crawl_writes_them(tmp_path: Path) -> None:
    (tmp_path / "values").write_text("HTTP://A.org:80 0.25\nhttp://a.org/b#top 0.5\nno url 0.75\n")
    values = quality_of(str(tmp_path / "values"), 0, canonical)
    assert values is not None and values(["http://a.org/", "http://a.org/b", "no url"]) == [0.25, 0.5, 0.75]


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"quality_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(
        "def value(urls):\n    return [len(url) - 20 if 'neg' in url else len(url) for url in urls]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return f"{name}:value"


def test_quality_from_a_function(web: Graph, urls: list[str], function: str) -> None:
    theirs = quality_values(function, web, np.zeros(web.pages), 0)
    assert theirs is not None
    same(live(pair("quality", "fifo"), quality_of(function, 0, canonical)), {"quality": theirs}, urls)


def test_a_negative_quality_is_refused(tmp_path: Path, function: str) -> None:
    (tmp_path / "values").write_text("http://a.org/ -1\n")
    with pytest.raises(ConfigError, match=r"-1 for http://a.org/; a quality must be at least 0"):
        quality_of(str(tmp_path / "values"), 0, canonical)
    values = quality_of(function, 0, canonical)
    assert values is not None
    with pytest.raises(ConfigError, match="at least 0"):
        values(["http://a.org/", "http://neg.org/"])


@given(st.lists(st.text(max_size=12), unique=True, max_size=30), st.integers(-(2**40), 2**40))
def test_zipf_depends_on_the_url_and_the_seed_only(urls: list[str], seed: int) -> None:
    values = quality_of("zipf", seed, canonical)
    assert values is not None
    assert list(values(urls)) == [values([url])[0] for url in urls]
    assert all(0.0 < value <= 1.0 for value in values(urls))


@pytest.mark.parametrize("source", ["opic", "pagerank"])
def test_a_source_without_values_beforehand_gives_nothing(source: str) -> None:
    assert quality_of(source, 0, canonical) is None
    with pytest.raises(ConfigError, match="--quality"):
        live(load_strategy("omniscient"))
