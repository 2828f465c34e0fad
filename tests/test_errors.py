"""The hint for a wrong name, and the classes of errors by who must act."""

import pytest

from trapline.errors import ConfigError, FetchError, InvariantError, TraplineError, nearest

RANKS = ["opic", "fifo", "larger-sites-first", "crawl-ability"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("opci", "opic"),
        ("OPIC", "opic"),
        ("crawlability", "crawl-ability"),
        ("larger-first", "larger-sites-first"),
    ],
)
def test_the_hint_for_a_near_miss_is_the_nearest_name(typed: str, meant: str) -> None:
    assert nearest(typed, RANKS) == f"did you mean {meant!r}?"


def test_the_hint_for_a_name_near_none_lists_all_names() -> None:
    assert nearest("zzz", RANKS) == "valid: crawl-ability, fifo, larger-sites-first, opic"


def test_the_hint_iterates_over_the_names_once() -> None:
    assert nearest("zzz", (name for name in RANKS)).startswith("valid: crawl-ability")


@pytest.mark.parametrize("error", [ConfigError, FetchError, InvariantError])
def test_one_base_catches_everything_raised_on_purpose(error: type[Exception]) -> None:
    assert issubclass(error, TraplineError)
