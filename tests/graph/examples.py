"""One small web in every format that can be loaded: four pages on two sites, with one link of a page to itself."""

import gzip
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.naive import bvgraph
from trapline.graph import load_graph, save

URLS = ["http://a.org/index.html", "http://a.org/", "http://b.org:8080/x?y=1", "HTTP://A.org:80/deep#a?b"]
LINKS = [[0, 1, 2], [], [0, 3], [1]]
EDGES = [(page, target) for page, row in enumerate(LINKS) for target in row]


def text(file: Path, rows: list[str]) -> Path:
    data = "".join(f"{row}\n" for row in rows).encode()
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
    return file


def adjacency(folder: Path) -> Path:
    text(folder / "urlmap.txt", URLS)
    text(folder / "webgraph.txt.gz", [", ".join(str(t + 1) for t in row) or "-" for row in LINKS])
    return folder


def edges(folder: Path) -> Path:
    text(folder / "urls.txt.gz", URLS)
    text(folder / "edges.tsv", [f"{s}\t{t}" for s, t in EDGES])
    return folder


def url_pairs(folder: Path) -> Path:
    return text(folder / "web.tsv", ["# source target", *(f"{URLS[s]}\t{URLS[t]}" for s, t in EDGES)])


def snap(folder: Path) -> Path:
    rows = [f"{10 * s + 3}\t{10 * t + 3}" for s, t in EDGES]
    return text(folder / "web.txt.gz", ["# Directed graph", "# FromNodeId\tToNodeId", *rows])


def comma_pairs(folder: Path) -> Path:
    return text(folder / "web_edges.csv.gz", ["id1,id2", *(f"{s},{t}" for s, t in EDGES)])


def crawl(folder: Path) -> Path:
    rows = [f"{page}\t{100 + page}\tabc\t{url}" for page, url in enumerate(URLS)]
    text(folder / "pages.tsv.gz", ["#id\tbytes\tsha1\turl   (crawled)", *rows])
    text(folder / "uncrawled.tsv", ["#id\turl", "4\thttp://c.org/", "5\thttp://a.org/far"])
    links = ["0\t0 1 2 4", "1\t", "2\t0 5 3", "3\t1"]
    text(folder / "links.tsv", links)
    return folder


def crawl_with_flags(folder: Path) -> Path:
    pages = [("1", "100", URLS[0]), ("1", "101", URLS[1]), ("0", "", "http://c.org/")]
    pages += [("1", "102", URLS[2]), ("1", "103", URLS[3])]
    rows = [f"{page}\t{flag}\t{size}\t\t{url}" for page, (flag, size, url) in enumerate(pages)]
    text(folder / "pages.tsv", ["#id\tcrawled\tbytes\tsha1\turl", *rows])
    text(folder / "links.tsv", ["0\t0 1 2 3", "1\t", "3\t0 4", "4\t1"])
    return folder


def dat(folder: Path) -> Path:
    text(folder / "links.dat", ["link url\r", *(f"{page} {url} \r" for page, url in enumerate(URLS, 1))])
    text(folder / "web.dat", ["start end", *(f"{s + 1} {t + 1}" for s, t in EDGES)])
    return folder


def node_rows(folder: Path) -> Path:
    pages = [f"n {page} {url}" for page, url in enumerate(URLS)]
    return text(folder / "gr0.Web", [*pages, *(f"e {s} {t}" for s, t in EDGES)])


def graph_txt(folder: Path) -> Path:
    text(folder / "web.graph-txt.gz", ["4", *(" ".join(map(str, row)) + " " for row in LINKS)])
    return folder


def bv(folder: Path) -> Path:
    bvgraph.write(folder, LINKS, bvgraph.Plan({}), Random(1))
    return folder


def saved(folder: Path) -> Path:
    (folder / "source").mkdir()
    save(load_graph(crawl(folder / "source")), folder / "web")
    return folder / "web"


WITH_URLS: tuple[Callable[[Path], Path], ...] = (
    adjacency,
    edges,
    url_pairs,
    crawl,
    crawl_with_flags,
    dat,
    node_rows,
    saved,
)
WITHOUT_URLS: tuple[Callable[[Path], Path], ...] = (snap, comma_pairs, graph_txt, bv)
