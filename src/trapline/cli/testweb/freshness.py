"""`trapline testweb freshness`: how fresh a crawler kept its copies of a changing web, measured from the web's own log."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.sections import Section, SectionedCommand, bundled
from trapline.cli.options.values import count, real, seconds
from trapline.errors import ConfigError
from trapline.terminal import say, say_json, say_text
from trapline.units import counted, duration

if TYPE_CHECKING:
    from trapline.testweb import CopyFreshness

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

_MEASURE = Section(
    "Measurement",
    (
        ("--from", "begin_s", seconds(), 0.0, "Start of the window, in seconds since testweb started."),
        (
            "--until",
            "end_s",
            seconds(),
            None,
            "End of the window, in seconds since testweb started. [the last answer in LOG]",
        ),
        ("--zipf", "zipf", real(10.0), 0.85, "Skew of accesses over pages: exponent of Zipf's law; 0: uniform."),
        ("--seed", "seed", count(0), 0, "Random seed that decides how popular each page is."),
        (
            "--accesses",
            "accesses",
            (_FILE, "FILE"),
            None,
            "File of real accesses; each line has seconds since 1970, a tab and a URL.",
        ),
    ),
)
_OUTPUT = Section("Output", (("--json", "as_json", None, False, "Print JSON."),))


@dataclass(frozen=True, slots=True)
class FreshnessOptions:
    begin_s: float
    end_s: float | None
    zipf: float
    seed: int
    accesses: Path | None


@click.command(cls=SectionedCommand)
@click.argument("log", type=_FILE)
@click.argument("history", type=_FILE)
@bundled("options", FreshnessOptions, _MEASURE)
@_OUTPUT
def freshness(log: Path, history: Path, options: FreshnessOptions, as_json: bool) -> None:
    """Measure how fresh a crawler kept its copies, from the files that `trapline testweb --log LOG --history HISTORY` wrote.

    A copy becomes fresh when an answer delivers or confirms it, and stays fresh until the page's next update. The result is
    two means of freshness: over time, and over accesses. A page that was never fetched is not fresh. Defaults are in brackets.
    """
    end_s, found = _measured(log, history, options)
    if as_json:
        about = {"from_s": options.begin_s, "until_s": end_s, "zipf": options.zipf, "seed": options.seed}
        say_json({**about, "freshness": {name: asdict(one) for name, one in found.items()}}, one_line=True)
    else:
        _show(options.begin_s, end_s, found)


def _measured(log: Path, history: Path, options: FreshnessOptions) -> tuple[float, Mapping[str, "CopyFreshness"]]:
    from trapline.testweb import freshness, popularity
    from trapline.testweb.checks.freshness import read_accesses, read_fetches, read_history

    known, keys, began = read_history(history)
    fetches = read_fetches(log, keys, began)
    if options.end_s is None and not len(fetches.page):
        raise ConfigError(f"{log}: contains no fetch of a page of {history}; give the end of the window: --until TIME")
    end_s = options.end_s if options.end_s is not None else float(fetches.sent_s.max(initial=0.0))
    accesses = read_accesses(options.accesses, keys, began) if options.accesses else None
    weights = popularity(len(keys), options.zipf, options.seed)
    return end_s, freshness(known, fetches, weights, options.begin_s, end_s, accesses)


def _show(begin_s: float, end_s: float, found: Mapping[str, "CopyFreshness"]) -> None:
    every = found["all"]
    happened = f"{counted(every.updates, 'update')} and {every.fetches:,} fetches"
    say_text(f"{counted(every.pages, 'page')}: {happened} in {duration(end_s - begin_s)}\n")
    say(f"  {'providers':12}{'pages':>9}{'fetches':>10}{'useful':>9}{'304':>8}{'fresh':>9}{'of copies':>12}")
    levels = {name: one for name, one in found.items() if name != "all" and one.pages < every.pages}
    for name, one in {**levels, "all": every}.items():
        shares = f"{_of(one.useful, one.fetches):>9.0%}{_of(one.confirmed, one.fetches):>8.0%}"
        say(
            f"  {name:12}{one.pages:>9,}{one.fetches:>10,}{shares}{one.binary:>9.3f}{one.binary_of_copies:>12.3f}"
            + _at_accesses(one)
        )


def _at_accesses(one: "CopyFreshness") -> str:
    return "" if one.binary_at_accesses is None else f"   {one.binary_at_accesses:.3f} at accesses"


def _of(part: int, whole: int) -> Any:
    return part / max(whole, 1)
