"""A model of servers is read from a file and printed again. Mistakes in a file are told in one line."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ConfigError
from trapline.servers.model import MODELS, ServerModel, model_named, model_text, read_model, sped_up

SECONDS = st.floats(0, 1e6)


@given(st.sampled_from(sorted(MODELS)), SECONDS, SECONDS, st.integers(0, 2**31 - 1), st.floats(0, 1))
def test_a_printed_model_is_read_again(name: str, think_s: float, window: float, requests: int, share: float) -> None:
    pairs = ((requests, share), (0, 1 - share))
    model = replace(MODELS[name], think_median_s=think_s, initial_window=window, requests=pairs)
    assert read_model(model_text(model)) == model


def test_a_file_changes_the_model_that_it_is_based_on(tmp_path: Path) -> None:
    file = tmp_path / "slow.toml"
    file.write_text('based_on = "measured-tcp"\nthink_median_s = 2\n')
    assert model_named(str(file)) == replace(MODELS["measured-tcp"], think_median_s=2)
    file.write_text("think_median_s = 2\n")
    assert model_named(str(file)) == replace(MODELS["measured"], think_median_s=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("think_median_s", "this is not TOML"),
        ('based_on = "mesured"', "did you mean 'measured'"),
        ("think_median = 1", "did you mean 'think_median_s'"),
        ("stall_share = 2", "stall_share is 2; it must be between 0 and 1"),
        ('stall_share = "2"', "stall_share is '2'; it must be a number"),
        ("stall_share = true", "it must be a number"),
        ("requests = [1, 2]", "it must be like"),
        ("requests = [[1, 0.5]]", "must add up to 1"),
        ("initial_window = -1", "initial_window is -1"),
        ("closing_round_trips = inf", "finite"),
    ],
)
def test_a_mistake_in_a_file_is_told_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "servers.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said) as refusal:
        model_named(str(file))
    assert str(refusal.value).startswith(str(file)) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("times", [0.0, -1.0, math.inf, math.nan])
def test_a_factor_of_speed_must_be_positive_and_finite(times: float) -> None:
    with pytest.raises(ConfigError, match="times is"):
        sped_up(ServerModel(), times)
