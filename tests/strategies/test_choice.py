"""The choice of a strategy by its name."""

from pathlib import Path

import pytest

from trapline.errors import ConfigError
from trapline.strategies import page_ranks, site_ranks, strategies
from trapline.strategies.base.choice import live_strategy, split, with_halves, worded
from trapline.strategies.base.inputs import FROM_LINKS

SOURCE = Path(__file__).parents[2] / "src" / "trapline" / "strategies"


def test_every_strategy_and_every_pair_has_a_name() -> None:
    for name in strategies():
        assert worded(name).name == name
    for page in page_ranks():
        for site in site_ranks():
            chosen = worded(f"{page}+{site}")
            assert (chosen.page.name, chosen.site.name) == (page, site)
            assert worded(chosen.name) == chosen  # as records and summaries write it


@pytest.mark.parametrize("text", ["opics", "opic+", "opic+fifos", "+fifo", "a+b+c", ""])
def test_an_unknown_name_is_reported(text: str) -> None:
    with pytest.raises(ConfigError):
        worded(text)


def test_a_file_may_have_a_plus_in_its_name(tmp_path: Path) -> None:
    file = tmp_path / "c+d.py"
    file.write_text((SOURCE / "opic.py").read_text())
    assert split(str(file)) is None and split("c+d") == ("c", "d")


def test_page_rank_and_site_rank_are_replaced_independently() -> None:
    whole = worded("breadth-first")
    assert with_halves(whole, None, None) is whole
    replaced = with_halves(whole, "opic", None)
    assert (replaced.page.name, replaced.site.name, replaced.name) == (
        "opic",
        whole.site.name,
        f"opic x {whole.site.name}",
    )
    assert with_halves(whole, "depth", "performance").name == "depth x performance"


@pytest.mark.parametrize("quality", [*FROM_LINKS, "zipf"])
def test_a_live_strategy_takes_its_quality_from_the_given_source(quality: str) -> None:
    chosen = live_strategy("quality+fifo", None, None, quality, has_history=False)
    assert chosen.page.name == (quality if quality in FROM_LINKS else "quality")


def test_a_live_strategy_with_a_missing_input_is_refused() -> None:
    with pytest.raises(ConfigError, match="--history"):
        live_strategy("historical-pagerank-zero", None, None, "opic", has_history=False)
    assert live_strategy("historical-pagerank-zero", None, None, "opic", has_history=True)
