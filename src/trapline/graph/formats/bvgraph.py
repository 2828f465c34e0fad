"""Graphs compressed by WebGraph: `NAME.graph` (bits) and `NAME.properties` (how to read them); no URLs.

The file is read from the first bit to the last, so `NAME.offsets` is not needed. `bvgraph_kernels` describes the
meaning of the bits.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.formats import bvgraph_kernels as bv
from trapline.graph.formats.textfile import LoadOptions, at_row, head, rows
from trapline.graph.graph import MOST_PAGES, Graph
from trapline.graph.sites import numbered_graph

NAME = "WebGraph BVGraph"
ACCEPTS = "NAME.graph + NAME.properties"
OPTIONS = frozenset({"ids_per_site"})

_PAGES_A_CALL = 1 << 20
_CODES = {"UNARY": bv.UNARY, "GAMMA": bv.GAMMA, "DELTA": bv.DELTA, "ZETA": bv.ZETA, "NIBBLE": bv.NIBBLE}
_FIELDS = {
    "OUTDEGREES": (bv.OUTDEGREES, ("GAMMA", "DELTA")),
    "REFERENCES": (bv.REFERENCES, ("UNARY", "GAMMA", "DELTA")),
    "BLOCK_COUNT": (bv.BLOCK_COUNTS, ("GAMMA", "DELTA", "UNARY")),
    "BLOCKS": (bv.BLOCKS, ("GAMMA", "DELTA")),
    "RESIDUALS": (bv.RESIDUALS, ("ZETA", "GAMMA", "DELTA", "NIBBLE")),
    "OFFSETS": (None, ("GAMMA", "DELTA")),
}
"""Fields whose code a flag can change: the position in the plan, and the possible codes, the default first."""

_FAULTS = {
    bv.BITS_END: "the file ends too early",
    bv.TOO_MANY_LINKS: "more links than the graph can have",
    bv.BAD_REFERENCE: "copies from a page outside the window",
    bv.BAD_BLOCKS: "copies more links than there are",
    bv.BAD_INTERVALS: "an interval leads out of the graph",
    bv.BAD_TARGET: "a link leads out of the graph or occurs twice",
    bv.BAD_CODE: "a number of more than 48 bits",
}


class Properties(NamedTuple):
    """The content of a .properties file."""

    file: Path
    rows: dict[str, tuple[int, str]]
    """row and value of each name"""

    def number(self, name: str, least: int, most: int, default: int | None = None) -> int:
        if name not in self.rows and default is not None:
            return default
        row, value = self.rows.get(name, (0, ""))
        if not row:
            raise ConfigError(f"{self.file}: {name} is missing")
        if not re.fullmatch(r"[0-9]{1,18}", value) or not least <= int(value) <= most:
            raise at_row(self.file, row, f"{name} is {value[:40]!r}; it must be in {least}..{most}")
        return int(value)


def graph_of(file: Path, named: bool) -> Path | None:
    # Other programs write .properties files too.
    mine = file.suffix == ".graph" or (file.suffix == ".properties" and any(b"BVGraph" in row for row in head(file)))
    return file.with_suffix(".graph") if mine else None


def load(file: Path, options: LoadOptions) -> Graph:
    graph_file, properties_file = file.with_suffix(".graph"), file.with_suffix(".properties")
    for one, other in ((graph_file, properties_file), (properties_file, graph_file)):
        if not one.is_file():
            raise ConfigError(f"{file.parent}: {one.name} is missing; it belongs to {other.name}")
    properties = read_properties(properties_file)
    pages = properties.number("nodes", 1, MOST_PAGES)
    bits = _bits(graph_file)
    # Every page takes at least one bit. Links give no such bound, because copied links may take none.
    if pages > 8 * len(bits):
        raise ConfigError(f"{graph_file}: {len(bits)} bytes cannot hold the {pages} pages of {properties_file.name}")
    links = properties.number("arcs", 0, pages * pages)
    offsets, targets = _decoded(graph_file, bits, plan_of(properties), pages, links, options)
    return numbered_graph(offsets, targets, format_name=NAME, options=options)


def read_properties(file: Path) -> Properties:
    found: dict[str, tuple[int, str]] = {}
    for row, line in rows(file):
        # Java writes these files in Latin-1, with `=` or `:` between name and value.
        text = line.decode("latin-1").strip()
        if text and text[0] not in "#!":
            name, separator, value = (
                re.split(r"\s*([=:])\s*", text, maxsplit=1) if re.search("[=:]", text) else ("",) * 3
            )
            if not separator:
                raise at_row(file, row, f"{text[:40]!r} is not of the form NAME=VALUE")
            found[name.lower()] = (row, value)
    return Properties(file, found)


def plan_of(properties: Properties) -> NDArray[np.int64]:
    """Return the codes and parameters in the form that `bvgraph_kernels` expects."""
    _check_kind(properties)
    plan = np.zeros(8, np.int64)
    for place, codes in _FIELDS.values():
        if place is not None:
            plan[place] = _CODES[codes[0]]
    row, flags = properties.rows.get("compressionflags", (0, ""))
    for flag in filter(None, (part.strip() for part in flags.split("|"))):
        field, _, code = flag.rpartition("_")
        if field not in _FIELDS or code not in _FIELDS[field][1]:
            raise at_row(properties.file, row, f"compression flag {flag[:40]!r} is not supported")
        if (place := _FIELDS[field][0]) is not None:
            plan[place] = _CODES[code]
    plan[bv.ZETA_K] = properties.number("zetak", 1, 40, default=3)
    plan[bv.WINDOW] = properties.number("windowsize", 0, MOST_PAGES)
    plan[bv.LEAST_INTERVAL] = properties.number("minintervallength", 0, MOST_PAGES)
    return plan


def _check_kind(properties: Properties) -> None:
    row, kind = properties.rows.get("graphclass", (0, ""))
    if not kind.endswith("BVGraph"):
        raise ConfigError(f"{properties.file}: graphclass is {kind[:60]!r}, only BVGraph can be read")
    row, order = properties.rows.get("endianness", (0, "big"))
    if order != "big":
        raise at_row(properties.file, row, f"endianness is {order[:40]!r}, only big can be read")
    properties.number("version", 0, 0, default=0)


def _bits(file: Path) -> NDArray[np.uint8]:
    if not file.stat().st_size:
        raise ConfigError(f"{file}: is empty")
    # Mapped copy-on-write, because compiled code requires writable arrays.
    return np.memmap(file, np.uint8, mode="c").view(np.ndarray)


def _decoded(
    file: Path, bits: NDArray[np.uint8], plan: NDArray[np.int64], pages: int, links: int, options: LoadOptions
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    at, offsets = np.zeros(2, np.int64), np.zeros(pages + 1, np.int64)
    targets, scratch = _room(file, links, pages)
    for first in range(0, pages, _PAGES_A_CALL):
        last = min(first + _PAGES_A_CALL, pages)
        stopped = bv.decode_pages(bits, at, plan, first, last, offsets, targets, scratch)
        if stopped < last:
            raise ConfigError(f"{file}, page {stopped}, bit {at[0]}: {_FAULTS[int(at[1])]}; the file is damaged")
        options.progress(int(at[0]) // 8, len(bits), file.name)
    if offsets[-1] != links:
        raise ConfigError(f"{file}: has {offsets[-1]} links, its properties say {links}; the file is damaged")
    return offsets, targets


def _room(file: Path, links: int, pages: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    try:
        # The system commits memory only as it is used, so a damaged number that is too large costs nothing.
        return np.empty(links, np.int32), np.empty((3, pages), np.int32)
    except (MemoryError, ValueError):
        raise ConfigError(f"{file}: its properties say {links} links, more than there is memory for") from None
