"""The pages a crawl begins with, from a user's file: a URL a row, or in a graph a page number. It knows URLs as text."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trapline.graph import Graph


_BARE = re.compile(r"(?!.*://)\w[^\s@/:]*(:\d+)?(/.*)?")  # example.org, localhost:8000/a


def seed_pages(file: Path, graph: "Graph") -> "NDArray[np.int32]":
    """The pages named in the file, in its order, each once. Empty rows and those that begin with # say nothing."""
    import numpy as np

    named = list(_named(file))
    if not named:
        raise ConfigError(f"{file}: no seeds in it; write a URL or a page number a row")
    page_of = _pages_of({url for _, url in named if not url.isdecimal()}, graph)
    pages = dict.fromkeys(_page(file, row, name, page_of, graph) for row, name in named)
    return np.fromiter(pages, np.int32, len(pages))


def seed_urls(urls: Sequence[str], file: Path | None) -> tuple[str, ...]:
    """The URLs that a live crawl begins with, canonical, each once. One without a scheme is of http."""
    given = [(url, "") for url in urls]
    if file is not None:
        given += [(url, f"{file}, row {row}: ") for row, url in _named(file)]
    if not given:
        raise ConfigError(f"{file}: no URL in it" if file else "no URL to begin with: name some, or give --seeds FILE")
    return tuple(dict.fromkeys(_canonical(url, where) for url, where in given))


def _canonical(url: str, where: str) -> str:
    from trapline.fetch.urls import MOST_URL, canonical

    found = canonical(f"http://{url}" if _BARE.fullmatch(url) else url)
    if found is None:
        why = f"longer than {MOST_URL:,} characters" if len(url) > MOST_URL else "not an http or https URL"
        # ascii: what is no URL may be anything, and move the cursor about.
        raise ConfigError(f"{where}{url if len(url) <= 80 else f'{url[:77]}...'!a}: {why}")
    return found


def _named(file: Path) -> Iterator[tuple[int, str]]:
    from trapline.graph.textfile import rows, text

    for row, line in rows(file):
        name = text(file, row, line).strip()
        if name and not name.startswith("#"):
            yield row, name


def _pages_of(urls: set[str], graph: "Graph") -> dict[str, int]:
    """One look at every URL of the graph: a table of them all would take more memory than the graph."""
    from trapline.graph.strings import decoded

    if not urls or graph.urls is None:
        return {}
    return {url: page for page, url in enumerate(decoded(graph.urls)) if url in urls}


def _page(file: Path, row: int, name: str, page_of: dict[str, int], graph: "Graph") -> int:
    from trapline.graph.textfile import at_row

    if name in page_of:
        return page_of[name]
    if not name.isdecimal():
        why = "not a page of the graph" if graph.urls is not None else "the graph has no URLs; give page numbers"
        raise at_row(file, row, f"{name[:80]!r}: {why}")
    if len(name) > 18 or int(name) >= graph.pages:
        raise at_row(file, row, f"page {name[:40]} is not in 0..{graph.pages - 1}")
    return int(name)
