"""A strategy as a user chose it: by name, from a file, as a pair of ranks or as an object, and the user's files that define it.

A strategy is named `opic`, `mine.py` or `opic+crawl-ability`. A pair of ranks is written with a plus, which shells do not interpret; the
pair's own name, such as 'opic x crawl-ability', is accepted too. This module knows names and files, not how a crawl runs.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from trapline.errors import ConfigError, InvariantError
from trapline.strategies.base.choice import split, with_halves, worded
from trapline.strategies.base.inputs import FROM_LINKS, check_inputs, with_quality
from trapline.strategies.base.registry import strategies
from trapline.strategies.base.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Chosen:
    """A strategy and the user's files that define it."""

    strategy: Strategy
    files: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return self.strategy.name

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Turn any error inside the block into a ConfigError of one line that names the user's file, if the strategy comes from one."""
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


def named(text: str | Path | Strategy) -> Chosen:
    """Return the strategy that a word of the command line names. A strategy itself is accepted too."""
    if isinstance(text, Strategy):
        return Chosen(text)
    return Chosen(worded(str(text)), files_of(str(text)))


def files_of(*words: str | None) -> tuple[Path, ...]:
    """Return the user's files among the words that name a strategy and its ranks."""
    return _files(*(half for word in words if word for half in split(word) or (word,)))


def chosen_by(strategy: str | Path | Strategy, page_rank: str | None, site_rank: str | None) -> Chosen:
    """Return the strategy with its page rank, site rank or both replaced."""
    whole = named(strategy)
    return Chosen(with_halves(whole.strategy, page_rank, site_rank), (*whole.files, *_files(page_rank, site_rank)))


def ready(chosen: Chosen, quality: str, history: bool) -> Chosen:
    """Return the strategy with this source of quality. Raise `ConfigError` if its page rank needs an input that is not given."""
    with chosen.blamed():
        strategy = with_quality(chosen.strategy, quality)
        check_inputs(strategy, quality not in FROM_LINKS, history)
    return replace(chosen, strategy=strategy)


def named_strategies(quality: str, history: bool) -> list[str]:
    """Return the names of all strategies that work with this source of quality, and with or without an old crawl."""

    def is_possible(name: str) -> bool:
        try:
            return bool(ready(named(name), quality, history))
        except ConfigError:
            return False

    return sorted(filter(is_possible, strategies()))


def uses_history(every: Iterable[Strategy]) -> bool:
    """Return whether one of the strategies uses an old crawl."""
    return any(name.startswith("history") for strategy in every for name in strategy.page.inputs)


def _files(*names: str | None) -> tuple[Path, ...]:
    return tuple(Path(name) for name in names if name and name.endswith(".py"))


def _row(error: BaseException, file: Path) -> str:
    """Return the row of the error in the user's file. numba names it last, after the places in its own files."""
    rows = re.findall(rf'{re.escape(file.name)}(?:", line | \()(\d+)', str(error))
    return f", row {rows[-1]}" if rows else ""
