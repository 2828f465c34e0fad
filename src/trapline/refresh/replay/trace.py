"""Update traces: when each page changed during a period. A trace is sampled, or read from a file. This module knows no crawler."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.formats.textfile import at_row, blocks, head, integer, plain_name, rows, shown, text
from trapline.samples import TRACES, located

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Trace:
    """An update trace. Times are seconds since its beginning; those of page i are at_s[offsets[i] : offsets[i + 1]], ascending."""

    name: str
    offsets: Ints
    at_s: Floats
    site: NDArray[np.int32]
    horizon_s: float
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def pages(self) -> int:
        """Number of pages."""
        return len(self.offsets) - 1

    @property
    def updates(self) -> int:
        """Number of updates."""
        return len(self.at_s)

    @property
    def sites(self) -> int:
        """Number of sites."""
        return int(self.site.max()) + 1

    def page_of_update(self) -> NDArray[np.int32]:
        """Return the page of each update."""
        return np.repeat(np.arange(self.pages, dtype=np.int32), np.diff(self.offsets))


def trace_of_pages(name: str, times: Sequence[Floats], sites: Sequence[str], **origin: Any) -> Trace:
    """Return a trace from the update times of each page, on any clock. It begins with the first update and ends with the last."""
    found = [page_s for page_s in times if len(page_s)]
    if not found:
        raise ConfigError(f"{name}: no updates in it; give another trace")
    begin = min(float(page_s.min()) for page_s in found)
    horizon_s = max(float(page_s.max()) for page_s in found) - begin
    if horizon_s <= 0:
        raise ConfigError(f"{name}: all its updates are at the same moment; give a trace that covers some time")
    offsets = np.concatenate([[0], np.cumsum([len(page_s) for page_s in times])]).astype(np.int64)
    at_s = np.concatenate([np.sort(page_s) for page_s in times]).astype(np.float64) - begin
    _, site = np.unique(np.array(sites), return_inverse=True)
    return Trace(name, offsets, at_s, site.astype(np.int32), horizon_s, origin)


def in_steps(trace: Trace, step_s: float) -> Trace:
    """Return the trace as a poll every `step_s` would see it: an update becomes known at the next poll, at most one per poll.

    The trace of Xu et al. is of this kind.
    """
    at_s = np.ceil(trace.at_s / step_s) * step_s
    page = trace.page_of_update()
    kept = np.ones(len(at_s), bool)
    kept[1:] = (at_s[1:] != at_s[:-1]) | (page[1:] != page[:-1])
    counts = np.bincount(page[kept], minlength=trace.pages)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    horizon_s = float(np.ceil(trace.horizon_s / step_s) * step_s)
    return Trace(trace.name, offsets, at_s[kept], trace.site, horizon_s, {**trace.origin, "step_s": step_s})


def stretches(trace: Trace, length_s: float) -> list[Trace]:
    """Cut the trace into consecutive pieces of this length; a shorter rest at the end is dropped. Every piece has all pages, also those
    that do not change in it."""
    page = trace.page_of_update()
    found = []
    for number in range(int(trace.horizon_s // length_s)):
        begin_s = number * length_s
        inside = (trace.at_s >= begin_s) & (trace.at_s < begin_s + length_s)
        counts = np.bincount(page[inside], minlength=trace.pages)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        origin = {**trace.origin, "begin_s": begin_s}
        found.append(Trace(trace.name, offsets, trace.at_s[inside] - begin_s, trace.site, length_s, origin))
    return found


# ---- Histories of a trace for the pages of another web. The assignment depends on the trace and the seed only, so that testweb and the
# simulator have the same web. This part knows no graph.

_SAMPLING = 11  # random stream
# A round is longer than the trace by this factor, so that the last update, at the very end, belongs to it.
_BEYOND = 1.0 + 1e-6


def sampled_histories(trace: Trace, pages: int, seed: int) -> list[Floats]:
    """Sample a history for each page.

    A history that is used for a second page is rotated by a random part of its length, so that the two pages do not change
    together.
    """
    rng = np.random.default_rng((seed, _SAMPLING))
    histories: list[Floats] = []
    while len(histories) < pages:
        rotate = bool(histories)
        for page in rng.permutation(trace.pages)[: pages - len(histories)].tolist():
            own = trace.at_s[trace.offsets[page] : trace.offsets[page + 1]]
            histories.append(np.sort((own + rng.random() * trace.horizon_s) % trace.horizon_s) if rotate else own)
    return histories


def round_of(trace: Trace, speed: float) -> float:
    """Return the seconds after which a history repeats, if `speed` seconds of the trace pass in one second."""
    return trace.horizon_s * _BEYOND / speed


# ---- Random update traces: Poisson pages, and pages that change in bursts. For tests, benchmarks and experiments.

_SPREAD = 1.5  # sigma of the logarithm of the pages' rates: a factor of 47 between the busiest and the quietest tenth
_BURST = 8  # mean number of updates in a burst
_BURST_SHARE = 0.01  # mean gap within a burst, as a share of the mean gap between bursts


def drawn_trace(kind: str, pages: int, updates: int, days: float, seed: int) -> Trace:
    """Sample a trace with `updates` updates in all. `kind`: poisson or bursty. The rates of pages are log-normal."""
    rng = np.random.default_rng((seed, 1))
    rate = np.exp(_SPREAD * rng.standard_normal(pages))
    counts = rng.multinomial(updates, rate / rate.sum())
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    horizon_s = days * 86_400.0
    page = np.repeat(np.arange(pages), counts)
    at = rng.random(updates) if kind == "poisson" else _bursts(rng, page, counts)
    order = np.lexsort((at, page))
    site = (np.arange(pages) // 100).astype(np.int32)
    return Trace(f"{kind}-{pages}", offsets, at[order] * horizon_s, site, horizon_s, {"form": kind, "seed": seed})


def _bursts(rng: np.random.Generator, page: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the time of each update, as a share of the period: it joins a random burst of its page, some time after its beginning."""
    bursts = np.maximum(counts // _BURST, 1)
    base = np.concatenate([[0], np.cumsum(bursts)[:-1]])
    begins = rng.random(int(bursts.sum()))
    joined = base[page] + (rng.random(len(page)) * bursts[page]).astype(np.int64)
    after = rng.exponential(_BURST * _BURST_SHARE / 2.0, len(page)) / bursts[page]
    return np.minimum(begins[joined] + after, 1.0)


# ---- Reader of update traces from files. It recognises the format by the contents. An error is one line with file and row.
#
# | contents | read as |
# |---|---|
# | rows `editor page seconds`, integers | an edit log: the updates of a page are the rows that name it |
# | a heading `unix_ts page`, then such rows | a change log; if the name of any page ends in _urls.json, only such pages |
# | a heading `#... unix_times_delta_encoded`, rows `page first gap gap ...` | histories: the first time is when the page was created |
#
# The pages of histories were created one after the other, over years. The time when few of them existed says little, so such a
# trace begins when half of its pages exist, unless the whole trace is requested. Every page exists from the beginning of the
# trace; the first change of a page that was created later is its creation.

_HISTORIES = b"unix_times_delta_encoded"
_NEWS = "_urls.json"
_FORMS = (
    "give a file with rows `editor page seconds`, or one that begins with the heading `unix_ts page` or"
    " `#... unix_times_delta_encoded` (docs/refresh.md describes all three)"
)
_PREFERRED = "content_changes.tsv"  # preferred to raw changes, of which one in a hundred is a change of content


def load_trace(path: Path | str, whole: bool = False) -> Trace:
    """Load the trace in a file, or in a folder that has one trace file, or a sample by name."""
    path = located(path)
    if not path.exists():
        raise ConfigError(
            f"{path}: no such file or folder; give the file of an update trace, a folder that has one, or the sample {TRACES[0]}"
        )
    file = _found_in(path) if path.is_dir() else path
    read = _reader(file)
    if read is None:
        for _ in blocks(file):  # raises its own error for a file that cannot be read
            break
        raise ConfigError(f"{file}: not an update trace; {_FORMS}")
    name = path.name if path.is_dir() else plain_name(path).split(".")[0]
    return read(name, file, whole)


def _found_in(folder: Path) -> Path:
    found = sorted(file for file in folder.iterdir() if file.is_file() and _reader(file) is not None)
    preferred = [file for file in found if plain_name(file) == _PREFERRED] or found
    if not found:
        raise ConfigError(f"{folder}: no update trace in it; {_FORMS}")
    if len(preferred) > 1:
        names = ", ".join(file.name for file in preferred)
        raise ConfigError(f"{folder}: several update traces in it ({names}); give one of these files")
    return preferred[0]


def _reader(file: Path) -> Callable[[str, Path, bool], Trace] | None:
    first = head(file)[0] if head(file) else b""
    if first.startswith(b"#") and first.split(b"\t")[-1].startswith(_HISTORIES):
        return _read_histories
    if first.split() == [b"unix_ts", b"page"]:
        return _read_changes
    return _read_edits if len(first.split()) == 3 and all(token.isdigit() for token in first.split()) else None


def _read_edits(name: str, file: Path, whole: bool) -> Trace:
    times: dict[bytes, list[int]] = {}
    for row, line in rows(file):
        tokens = line.split()
        if len(tokens) != 3:
            raise at_row(file, row, f"{shown(line)} is not `editor page seconds`")
        times.setdefault(tokens[1], []).append(integer(file, row, tokens[2]))
    return _trace(name, times, [""] * len(times), "edits")


def _columns(file: Path, form: str) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the number and the two columns of every row except the heading."""
    for row, line in rows(file):
        if row == 1 or not line:
            continue
        tokens = line.split(b"\t")
        if len(tokens) != 2:
            raise at_row(file, row, f"{shown(line)} is not `{form}`")
        yield row, tokens[0], tokens[1]


def _read_changes(name: str, file: Path, whole: bool) -> Trace:
    times: dict[str, list[int]] = {}
    for row, moment, page in _columns(file, "unix_ts<tab>page"):
        times.setdefault(text(file, row, page), []).append(integer(file, row, moment))
    news = {page: at_s for page, at_s in times.items() if page.endswith(_NEWS)}
    times = news or times
    return _trace(name, times, list(map(_site_of, times)), "changes")


def _read_histories(name: str, file: Path, whole: bool) -> Trace:
    times: dict[str, Floats] = {}
    for row, page, numbers in _columns(file, "page<tab>time gap gap ..."):
        steps = [integer(file, row, token) for token in numbers.split()]
        times[text(file, row, page)] = np.cumsum(np.array(steps, np.float64))
    if not times:
        raise ConfigError(f"{file}: no pages in it; give another trace")
    begin = -np.inf if whole else float(np.median([at_s[0] for at_s in times.values() if len(at_s)]))
    kept = {page: at_s[at_s >= begin] for page, at_s in times.items()}
    sites = _sites_beside(file)
    return trace_of_pages(
        name, list(kept.values()), [sites.get(page) or _site_of(page) for page in kept], form="histories"
    )


def _trace(name: str, times: dict[bytes, list[int]] | dict[str, list[int]], sites: list[str], form: str) -> Trace:
    return trace_of_pages(name, [np.array(at_s, np.float64) for at_s in times.values()], sites, form=form)


def _site_of(page: str) -> str:
    """Return the host of a URL. A text that is not a URL is a site of its own.

    >>> _site_of("https://a.org/x"), _site_of("npr_urls.json")
    ('a.org', 'npr_urls.json')
    """
    return page.split("/")[2] if "://" in page else page


def _sites_beside(file: Path) -> dict[str, str]:
    """Return the hosts of numbered pages from the docs.tsv next to the file, as in the histories of Open Terms Archive."""
    beside = next((at for at in (file.parent / "docs.tsv", file.parent / "docs.tsv.gz") if at.is_file()), None)
    if beside is None:
        return {}
    cells = [text(beside, row, line).split("\t") for row, line in rows(beside)]
    return {
        cell[0]: _site_of(cell[2]) if "://" in cell[2] else cell[1].split("/")[0] for cell in cells if len(cell) > 2
    }
