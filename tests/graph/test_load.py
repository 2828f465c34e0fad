"""Recorded graphs from text files: what is read, and the file and row of an error."""

import gzip
from pathlib import Path

import pytest

from trapline.errors import ConfigError
from trapline.graph import load_graph
from trapline.graph.sites import site_of

URLS = ["http://a.org/index.html", "http://a.org/", "http://b.org:8080/x?y=1", "HTTP://A.org:80/deep#a?b"]
ROWS = ["2, 3, 2, 1", "-", "1 4", "2"]


def write(folder: Path, **files: str | bytes | list[str]) -> Path:
    for name, content in files.items():
        path = folder / name.replace("_", ".")
        text = "\n".join(content) + "\n" if isinstance(content, list) else content
        data = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" and isinstance(text, str) else data)
    return folder


@pytest.mark.parametrize("suffix", ["txt", "txt_gz"])
def test_adjacency_lines(tmp_path: Path, suffix: str) -> None:
    graph = load_graph(write(tmp_path, **{f"urlmap_{suffix}": URLS, f"webgraph_{suffix}": ROWS}))
    assert [graph.targets_of(page).tolist() for page in range(4)] == [[1, 2, 0], [], [0, 3], [1]]
    assert (graph.pages, graph.links, graph.sites) == (4, 6, 2)
    assert graph.site.tolist() == [0, 0, 1, 0]
    assert graph.home.tolist() == [1, 2]
    assert graph.dynamic.tolist() == [0, 0, 1, 0]
    assert graph.ips.tolist() == [0, 1]
    assert graph.urls is not None and [graph.urls[page] for page in range(4)] == URLS
    assert graph.site_names is not None and graph.site_names[1] == "http://b.org:8080"


@pytest.mark.parametrize("edges", ["edges_tsv", "edges_tsv_gz"])
def test_edge_list(tmp_path: Path, edges: str) -> None:
    graph = load_graph(write(tmp_path, urls_txt=URLS, **{edges: ["3\t0", "0\t2", "3\t0", "3 3", "0\t1"]}))
    assert [graph.targets_of(page).tolist() for page in range(4)] == [[2, 1], [], [], [0, 3]]


def test_an_empty_edge_list_is_a_graph_without_links(tmp_path: Path) -> None:
    assert load_graph(write(tmp_path, urls_txt=URLS, edges_tsv="")).links == 0


def test_the_last_line_end_and_carriage_returns_do_not_matter(tmp_path: Path) -> None:
    graph = load_graph(write(tmp_path, urlmap_txt="http://a/\r\nhttp://b/", webgraph_txt="2\r\n-"))
    assert (graph.pages, graph.links) == (2, 1)


def test_equal_urls_are_different_pages_and_the_first_is_home(tmp_path: Path) -> None:
    graph = load_graph(
        write(tmp_path, urlmap_txt=["http://a/x", "http://a/", "http://a/"], webgraph_txt=["2", "3", "1"])
    )
    assert graph.home.tolist() == [1]


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://a:443?q", "https://a"),
        ("http://a:443/", "http://a:443"),
        ("http://[::1]:80/", "http://[::1]"),
        ("ftp://a", "ftp://a"),
        ("http://host /with-a-blank-in-it", "http://host "),
        ("//a/b", None),
        ("http:///b", None),
        ("mailto:a@b", None),
        ("", None),
    ],
)
def test_a_site_is_scheme_host_and_port(url: str, site: str | None) -> None:
    assert site_of(url) == site


GOOD = {"urlmap_txt": URLS, "webgraph_txt": ROWS}
TRUNCATED = gzip.compress("\n".join(ROWS).encode(), mtime=0)[:-6]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (GOOD | {"webgraph_txt": ["2", "-", "1, x7", "2"]}, "webgraph.txt, row 3: 'x7' is not an integer"),
        (GOOD | {"webgraph_txt": ["2", "-1", "-", "-"]}, "webgraph.txt, row 2: '-1' is not an integer"),
        (GOOD | {"webgraph_txt": ["2", "1_1", "-", "-"]}, "webgraph.txt, row 2: '1_1' is not an integer"),
        (GOOD | {"webgraph_txt": ["2", "9" * 30, "-", "-"]}, "row 2: '" + "9" * 30 + "' is not an integer"),
        (GOOD | {"webgraph_txt": ["2", "-", "-", "1, 5"]}, "webgraph.txt, row 4: page 5, but pages are numbered 1..4"),
        (GOOD | {"webgraph_txt": ["0", "-", "-", "-"]}, "webgraph.txt, row 1: page 0, but pages are numbered 1..4"),
        (GOOD | {"webgraph_txt": ["2", "", "-", "-"]}, "webgraph.txt, row 2: empty"),
        (GOOD | {"webgraph_txt": ["2", "-"]}, "webgraph.txt, row 3: missing: urlmap.txt has 4 pages"),
        (GOOD | {"webgraph_txt": [*ROWS, "-"]}, "webgraph.txt, row 5: one row too many: urlmap.txt has 4 pages"),
        (GOOD | {"urlmap_txt": [*URLS[:2], "", URLS[3]]}, "urlmap.txt, row 3: empty; each row must have a URL"),
        (GOOD | {"urlmap_txt": ["/x", "b", "mailto:c", "d"]}, "urlmap.txt: no URL is absolute"),
        (GOOD | {"urlmap_txt": b"http://a/\nhttp://\xff/\n"}, "urlmap.txt, row 2: byte 8 is not UTF-8"),
        (GOOD | {"urlmap_txt": ""}, "urlmap.txt, row 1: empty"),
        ({"urlmap_txt": URLS}, "webgraph.txt (or webgraph.txt.gz) is missing; it belongs to urlmap.txt"),
        ({"webgraph_txt": ROWS}, "urlmap.txt (or urlmap.txt.gz) is missing; it belongs to webgraph.txt"),
        ({"urlmap_txt": URLS, "webgraph_txt_gz": b"2\n"}, "webgraph.txt.gz, row 1: not a gzip file"),
        ({"urlmap_txt": URLS, "webgraph_txt_gz": TRUNCATED}, "the gzip file ends too early"),
        ({"urls_txt": URLS, "edges_tsv": ["0\t1", "2"]}, "edges.tsv, row 2: 1 values"),
        ({"urls_txt": URLS, "edges_tsv": ["0\t1", "", "1\t1"]}, "edges.tsv, row 2: 0 values"),
        ({"urls_txt": URLS, "edges_tsv": ["0\t1", "0\t4"]}, "edges.tsv, row 2: page 4, but pages are numbered 0..3"),
        ({"urls_txt": URLS, "edges_tsv": ["0\ta"]}, "edges.tsv, row 1: 'a' is not an integer"),
        ({"edges_tsv": ["0\t1"]}, "urls.txt (or urls.txt.gz) is missing"),
        (
            {"other_txt": "x"},
            "no graph found; give a folder or file in one of these formats (see docs/graphs.md): graph.json",
        ),
    ],
)
def test_an_error_is_one_line_with_file_and_row(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_graph(write(tmp_path, **files))
    assert message in str(error.value)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    data = bytearray(gzip.compress("\n".join(ROWS * 100).encode()))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(ConfigError, match=r"webgraph\.txt\.gz, row \d+: "):
        load_graph(write(tmp_path, urlmap_txt=URLS * 100, webgraph_txt_gz=bytes(data)))


def test_a_path_without_a_graph_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(ConfigError, match="file: no graph found"):
        load_graph(file)
    with pytest.raises(ConfigError, match="does not exist; give a folder or file with a graph"):
        load_graph(tmp_path / "none")
