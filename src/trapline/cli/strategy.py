"""Strategies as users name them: `opic`, `mine.py`, `opic+crawl-ability`. It knows names and files, not how a crawl runs.

A pair is written with a plus, because shells leave it alone; a pair's own name, such as 'opic x crawl-ability', will do
too.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.cli.sections import Section
from trapline.errors import ConfigError, InvariantError

if TYPE_CHECKING:
    from trapline.strategies import Strategy

STRATEGY = Section(
    "Strategy",
    (
        (
            "--strategy",
            "strategy",
            (str, "NAME"),
            None,
            "A strategy, a pair PAGE+SITE, or a file (.py).",
        ),
        ("--page-rank", "page_rank", (str, "NAME"), None, "Rank pages by this instead of as it does."),
        ("--site-rank", "site_rank", (str, "NAME"), None, "Rank sites by this instead of as it does."),
    ),
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A strategy, and the user's files that it comes from."""

    strategy: "Strategy"
    files: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return self.strategy.name

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """What fails in here for a strategy from a user's file is the user's to mend: one line that names the file."""
        try:
            yield
        except InvariantError:
            raise
        except Exception as error:
            if not self.files:
                raise
            reason = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
            file = self._guilty(error.__cause__ or error)
            if reason.startswith(str(file)):
                raise
            raise ConfigError(f"{file}{_row(error.__cause__ or error, file)}: {reason}") from error

    def _guilty(self, error: BaseException) -> Path:
        return next((file for file in self.files if file.name in str(error)), self.files[0])


def named(text: str) -> Chosen:
    """The strategy that a word of the command line means."""
    from trapline.strategies.choice import worded

    return Chosen(worded(text), files_of(text))


def files_of(*words: str | None) -> tuple[Path, ...]:
    """The user's files among the words that name a strategy and its halves."""
    from trapline.strategies.choice import split

    return _files(*(half for word in words if word for half in split(word) or (word,)))


def chosen_by(strategy: str | None, page_rank: str | None, site_rank: str | None) -> Chosen:
    """The strategy, with those of its halves replaced that are named; two named halves need no strategy."""
    from trapline.strategies import strategies
    from trapline.strategies.choice import with_halves

    if strategy is None:
        if not (page_rank and site_rank):
            raise ConfigError(f"give --strategy ({', '.join(strategies())}), or --page-rank and --site-rank")
        return _paired(page_rank, site_rank)
    whole = named(strategy)
    return Chosen(with_halves(whole.strategy, page_rank, site_rank), (*whole.files, *_files(page_rank, site_rank)))


def ready(chosen: Chosen, quality: str, history: bool) -> Chosen:
    """The strategy with this source of quality; `ConfigError` if its page rank needs what is not given."""
    from trapline.strategies.inputs import check_inputs, with_quality

    with chosen.blamed():
        strategy = with_quality(chosen.strategy, quality)
        check_inputs(strategy, quality != "opic", history)
    return replace(chosen, strategy=strategy)


def named_strategies(quality: str, history: bool) -> list[str]:
    """The names of all strategies that can be had with this source of quality, and with or without an old crawl."""
    from trapline.strategies import strategies

    def can_be_had(name: str) -> bool:
        try:
            return bool(ready(named(name), quality, history))
        except ConfigError:
            return False

    return sorted(filter(can_be_had, strategies()))


def _paired(page: str, site: str) -> Chosen:
    from trapline.strategies import pair

    return Chosen(pair(page, site), _files(page, site))


def _files(*names: str | None) -> tuple[Path, ...]:
    return tuple(Path(name) for name in names if name and name.endswith(".py"))


def _row(error: BaseException, file: Path) -> str:
    """numba ends with the place in the user's file, after those in its own."""
    rows = re.findall(rf'{re.escape(file.name)}(?:", line | \()(\d+)', str(error))
    return f", row {rows[-1]}" if rows else ""
