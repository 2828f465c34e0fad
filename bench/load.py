"""Measures the speed of loading graphs, as the table in docs/graphs.md: python bench/load.py [PAGES SITES [GRAPH ...]]

Writes a generated web in several formats into a temporary folder and loads it from there. Prints seconds of processor time,
the best of three, and their ratio to a bare pass over the same bytes that counts line feeds (after unpacking, if the file is
gzipped). Seconds differ between machines, the ratio hardly. GRAPH is another file to load, such as x.graph.
"""

import gzip
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trapline.compiled.jit import ready
from trapline.graph import Graph, generate, load_graph, save, save_edges, save_snap
from trapline.graph.strings import stored

_GZIP_LEVEL = 6  # the default of the program gzip


class Case(NamedTuple):
    name: str
    graph: Path
    text: list[Path]
    """the files that a bare pass reads; empty if loading does not read all bytes"""


def cases(web: Graph, folder: Path) -> Iterator[Case]:
    save_edges(web, folder / "edges")
    yield Case("edge list", folder / "edges", [folder / "edges" / name for name in ("urls.txt", "edges.tsv")])
    save_snap(web, folder / "snap")
    snap = folder / "snap" / "edges.txt"
    yield Case("SNAP", snap, [snap])
    packed = folder / "edges.txt.gz"
    packed.write_bytes(gzip.compress(snap.read_bytes(), _GZIP_LEVEL))
    yield Case("SNAP, gzipped", packed, [packed])
    pairs = folder / "pairs.tsv"
    write_url_pairs(web, pairs)
    yield Case("edges between URLs", pairs, [pairs])
    save(web, folder / "saved")
    yield Case("saved", folder / "saved", [])


def write_url_pairs(web: Graph, file: Path) -> None:
    """Write the first tenth of the links; all would take long to load, because each URL is looked up by name."""
    assert web.urls is not None
    block, links = stored(web.urls), web.links // 10
    urls = [block[page] for page in range(web.pages)]
    sources = np.repeat(np.arange(web.pages), np.diff(web.offsets))[:links]
    ends = zip(sources.tolist(), web.targets[:links].tolist(), strict=True)
    file.write_text("".join(f"{urls[source]}\t{urls[target]}\n" for source, target in ends))


def best_s(action: Callable[[], object]) -> float:
    """Return seconds of processor time, the best of three."""
    return min(_seconds(action) for _ in range(3))


def _seconds(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def bare_pass(files: list[Path]) -> int:
    """Count the line feeds in all files."""
    return sum(int(np.count_nonzero(np.frombuffer(_unpacked(file), np.uint8) == 10)) for file in files)


def _unpacked(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


def row(case: Case) -> str:
    graph = load_graph(case.graph)
    took_s = best_s(lambda: load_graph(case.graph))
    ratio = f"{took_s / best_s(lambda: bare_pass(case.text)):.1f}" if case.text else "-"
    size = f"{graph.pages:,} | {graph.links:,}"
    return f"| {case.name} | {size} | {took_s:.2f} | {graph.links / took_s / 1e6:.1f} | {ratio} |"


def main(pages: int, sites: int, others: list[str]) -> None:
    ready()
    web = generate(pages, sites, seed=1)
    print("| form | pages | links | s | M links/s | times a bare pass |\n|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch:
        named = [Case(Path(name).name, Path(name), []) for name in others]
        for case in (*cases(web, Path(scratch)), *named):
            print(row(case), flush=True)


if __name__ == "__main__":
    pages, sites = map(int, sys.argv[1:3] or (1_000_000, 15_000))
    main(pages, sites, sys.argv[3:])
