"""Reader of update traces from files. It recognises the format by the contents. An error is one line with file and row.

| contents | read as |
|---|---|
| rows `editor page seconds`, integers | an edit log: the updates of a page are the rows that name it |
| a heading `unix_ts page`, then such rows | a change log; if the name of any page ends in _urls.json, only such pages |
| a heading `#... unix_times_delta_encoded`, rows `page first gap gap ...` | histories: the first time is when the page was created |

The pages of histories were created one after the other, over years. The time when few of them existed says little, so such a
trace begins when half of its pages exist, unless the whole trace is requested. Every page exists from the beginning of the
trace; the first change of a page that was created later is its creation.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from trapline.errors import ConfigError
from trapline.graph.formats.textfile import at_row, head, integer, plain_name, rows, shown, text
from trapline.refresh.replay.trace import Floats, Trace, trace_of_pages

_HISTORIES = b"unix_times_delta_encoded"
_NEWS = "_urls.json"
_PREFERRED = "content_changes.tsv"  # preferred to raw changes, of which one in a hundred is a change of content


def load_trace(path: Path, whole: bool = False) -> Trace:
    """Load the trace in a file, or in a folder that has one trace file."""
    if not path.exists():
        raise ConfigError(f"{path}: no such file or folder")
    file = path if path.is_file() else _found_in(path)
    read = _reader(file)
    if read is None:
        raise ConfigError(f"{file}: not an update trace (see docs/refresh.md for the three forms)")
    name = path.name if path.is_dir() else plain_name(path).split(".")[0]
    return read(name, file, whole)


def _found_in(folder: Path) -> Path:
    found = sorted(file for file in folder.iterdir() if file.is_file() and _reader(file) is not None)
    preferred = [file for file in found if plain_name(file) == _PREFERRED] or found
    if not found:
        raise ConfigError(f"{folder}: no update trace in it (see docs/refresh.md for the three forms)")
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
