"""Every format gives the same web, no page is lost, and invalid input is reported in one line."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.graph import examples
from tests.graph.examples import LINKS, URLS, text
from trapline.errors import ConfigError
from trapline.graph import Graph, LoadOptions, load_graph, save, save_edges, save_snap
from trapline.graph.graph import fault
from trapline.graph.strings import Strings

Example = Callable[[Path], Path]


def rows_of(graph: Graph) -> list[list[int]]:
    return [graph.targets_of(page).tolist() for page in range(graph.pages)]


def strings(table: Strings | None) -> list[str] | None:
    return None if table is None else [table[index] for index in range(len(table))]


def assert_equal(one: Graph, other: Graph) -> None:
    """Equal in every field, including fields that a later version of Graph may have."""
    for field in fields(Graph):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype and np.array_equal(mine, theirs), field.name
        elif field.name in ("urls", "site_names"):
            assert strings(mine) == strings(theirs), field.name
        else:
            assert mine == theirs, field.name


@pytest.mark.parametrize("example", [*examples.WITH_URLS, *examples.WITHOUT_URLS])
def test_the_same_links_come_out_of_every_format(tmp_path: Path, example: Example) -> None:
    graph = load_graph(example(tmp_path))
    assert rows_of(graph) == LINKS
    assert fault(graph) is None


@pytest.mark.parametrize("example", examples.WITH_URLS)
def test_the_same_sites_come_out_of_every_format_with_urls(tmp_path: Path, example: Example) -> None:
    graph = load_graph(example(tmp_path))
    assert strings(graph.urls) == URLS
    assert strings(graph.site_names) == ["http://a.org", "http://b.org:8080"]
    assert (graph.site.tolist(), graph.home.tolist(), graph.ips.tolist()) == ([0, 0, 1, 0], [1, 2], [0, 1])
    assert graph.dynamic.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("example", [*examples.WITH_URLS, *examples.WITHOUT_URLS])
def test_a_folder_and_its_file_give_the_same_graph(tmp_path: Path, example: Example) -> None:
    path = example(tmp_path)
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.suffix != ".npy"]
    for file in files:
        assert_equal(load_graph(file), load_graph(path if path.is_dir() else path.parent))


@pytest.mark.parametrize("example", [*examples.WITH_URLS, *examples.WITHOUT_URLS])
def test_a_saved_graph_is_equal_to_its_source_in_every_field(tmp_path: Path, example: Example) -> None:
    graph = load_graph(example(tmp_path))
    save(graph, tmp_path / "out")
    assert_equal(load_graph(tmp_path / "out"), graph)


@pytest.mark.parametrize("example", examples.WITH_URLS)
def test_text_keeps_pages_links_sites_and_urls(tmp_path: Path, example: Example) -> None:
    graph = load_graph(example(tmp_path))
    save_edges(graph, tmp_path / "out")
    back = load_graph(tmp_path / "out")
    assert rows_of(back) == rows_of(graph)
    assert (strings(back.urls), strings(back.site_names)) == (strings(graph.urls), strings(graph.site_names))
    assert np.array_equal(back.home, graph.home)


@pytest.mark.parametrize("example", examples.WITHOUT_URLS)
def test_snap_keeps_pages_and_links(tmp_path: Path, example: Example) -> None:
    graph = load_graph(example(tmp_path))
    save_snap(graph, tmp_path / "out")
    assert rows_of(load_graph(tmp_path / "out")) == LINKS


# ---- sites, homes, options


@pytest.mark.parametrize("example", examples.WITHOUT_URLS)
def test_pages_without_urls_are_one_site_or_cut_into_equal_ones(tmp_path: Path, example: Example) -> None:
    path = example(tmp_path)
    whole, cut = load_graph(path), load_graph(path, LoadOptions(ids_per_site=3))
    assert (whole.site.tolist(), whole.home.tolist(), whole.urls) == ([0, 0, 0, 0], [0], None)
    assert (cut.site.tolist(), cut.home.tolist(), cut.ips.tolist()) == ([0, 0, 0, 1], [0, 3], [0, 1])
    assert load_graph(path, LoadOptions(ids_per_site=10**12)).sites == 1


@pytest.mark.parametrize("example", [examples.crawl, examples.crawl_with_flags])
def test_a_crawl_has_sizes_and_on_request_its_dangling_pages(tmp_path: Path, example: Example) -> None:
    path = example(tmp_path)
    graph, whole = load_graph(path), load_graph(path, LoadOptions(dangling=True))
    assert graph.sizes is not None and graph.sizes.tolist() == [100, 101, 102, 103]
    assert whole.sizes is not None and sorted(whole.sizes.tolist())[-4:] == [100, 101, 102, 103]
    assert whole.urls is not None and "http://c.org/" in (strings(whole.urls) or [])
    assert whole.sites == 3 and whole.links > graph.links
    far = (strings(whole.urls) or []).index("http://c.org/")
    assert whole.targets_of(far).tolist() == [] and whole.sizes[far] == 0


def test_pages_whose_url_has_no_host_share_one_site(tmp_path: Path) -> None:
    urls = ["http://a/", "http:faq.html", "mailto:b@c", "http:///d", "http://www1/hollins.edu/"]
    text(tmp_path / "urls.txt", urls)
    text(tmp_path / "edges.tsv", ["0 1"])
    graph = load_graph(tmp_path)
    assert strings(graph.site_names) == ["http://a", "(no host)", "http://www1"]
    assert graph.site.tolist() == [0, 1, 1, 1, 2]
    assert graph.origin["urls_without_host"] == 3


def test_equal_urls_are_different_pages(tmp_path: Path) -> None:
    text(tmp_path / "g", ["n 0 http://a/", "n 1 http://a/", "e 0 1"])
    assert load_graph(tmp_path).pages == 2


def test_snap_pages_keep_the_order_of_their_numbers(tmp_path: Path) -> None:
    far = 10**17
    file = text(tmp_path / "web.txt", [f"{far} 5", "5 7", f"7 {far}"])
    assert rows_of(load_graph(file)) == [[1], [2], [0]]


@pytest.mark.parametrize("heading", ["id1,id2", '"from","to"', "# by hand\nsource node, target node", "a,b\r"])
def test_a_list_with_commas_may_have_a_heading(tmp_path: Path, heading: str) -> None:
    assert rows_of(load_graph(text(tmp_path / "web.csv", [heading, "0,1", "0,2", "2,0"]))) == [[1, 2], [], [0]]


@pytest.mark.parametrize("row", ["1.5,2.5", "1,b", "a,1", "-1,x", "a b", "a,b,c", ",", "+1,+2"])
def test_a_row_that_may_be_a_link_is_not_skipped_as_a_heading(tmp_path: Path, row: str) -> None:
    with pytest.raises(ConfigError, match="no graph found"):
        load_graph(text(tmp_path / "web.csv", [row, "0,1"]))


@pytest.mark.parametrize(("nodes", "pages"), [(9, 9), (3, 2), (10**17, 2)])
def test_a_snap_head_counts_pages_without_links_if_the_numbers_allow_it(tmp_path: Path, nodes: int, pages: int) -> None:
    file = text(tmp_path / "web.txt", [f"# Nodes: {nodes} Edges: 1", "3 4"])
    assert load_graph(file).pages == pages


def test_a_folder_with_text_and_compressed_form_gives_one_graph(tmp_path: Path) -> None:
    examples.bv(tmp_path)
    file = text(tmp_path / "web.graph-txt", ["1", ""])
    assert load_graph(tmp_path).pages == 4
    assert load_graph(file).pages == 1


# ---- invalid input


def test_two_graphs_in_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    examples.edges(tmp_path)
    examples.dat(tmp_path)
    with pytest.raises(
        ConfigError, match=r"more than one graph: edges\.tsv \(edge list\), web\.dat \(numbered tables\)"
    ):
        load_graph(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / "two").mkdir(exist_ok=True)
        text(tmp_path / "two" / name, ["0 1"])
    with pytest.raises(
        ConfigError, match=r"a\.txt \(SNAP edge list\), b\.txt \(SNAP edge list\); name the file of one"
    ):
        load_graph(tmp_path / "two")


def test_options_that_a_format_cannot_satisfy_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--dangling: this format"):
        load_graph(examples.edges(tmp_path), LoadOptions(dangling=True))
    with pytest.raises(ConfigError, match="--ids-per-site: this format"):
        load_graph(tmp_path, LoadOptions(ids_per_site=2))
    with pytest.raises(ConfigError, match="ids_per_site is 0"):
        load_graph(tmp_path, LoadOptions(ids_per_site=0))


def test_the_error_for_text_without_urls_names_other_formats(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--to snap"):
        save_edges(load_graph(examples.bv(tmp_path)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


HEAD = "#id\tbytes\tsha1\turl"
PAGES = [HEAD, "0\t1\tx\thttp://a/", "1\t1\tx\thttp://b/"]
HUGE = "9" * 30


@pytest.mark.parametrize(
    ("files", "message"),
    [
        # edges between URLs
        ({"w.tsv": ["http://a/ http://b/", "http://a/"]}, "w.tsv, row 2: 1 values; give a source URL"),
        ({"w.tsv": ["http://a/ http://b/", ""]}, "w.tsv, row 2: 0 values"),
        ({"w.tsv": b"http://a/ http://b/\n# x\nhttp://\xff/ http://b/\n"}, "w.tsv, row 3: byte 8 is not UTF-8"),
        # SNAP
        ({"w.txt": ["0 1", "0 1 2"]}, "w.txt, row 2: 3 values"),
        ({"w.txt": ["# c", "0 1", "# c", "0 -1"]}, "w.txt, row 4: '-1' is not an integer"),
        ({"w.txt": ["-1 0"]}, "w.txt, row 1: '-1' is not an integer"),
        ({"w.txt": ["0 1", f"0 {HUGE}"]}, f"w.txt, row 2: '{HUGE}' is not an integer"),
        ({"w.txt": b"0 1\n0 \xff\n"}, "w.txt, row 2: '\ufffd' is not an integer"),
        ({"w.txt": ["# only comments"]}, "no graph found"),
        ({"w.csv": ["id1,id2", "0,1", "0,"]}, "w.csv, row 3: 1 values"),
        ({"w.csv": ["id1,id2", "0,1", "id1,id2"]}, "w.csv, row 3: 'id1' is not an integer"),
        ({"w.csv": ["id1,id2"]}, "no graph found"),
        ({"w.txt": []}, "no graph found"),
        # crawls
        ({"pages.tsv": PAGES}, "links.tsv (or links.tsv.gz) is missing"),
        ({"links.tsv": ["0\t1"]}, "pages.tsv (or pages.tsv.gz) is missing"),
        ({"pages.tsv": [], "links.tsv": []}, "pages.tsv, row 1: '': the first row must name the columns"),
        (
            {"pages.tsv": ["#id\tname"], "links.tsv": []},
            "row 1: the first row must name the columns, separated by tabs",
        ),
        ({"pages.tsv": [HEAD], "links.tsv": []}, "pages.tsv: has no fetched pages"),
        ({"pages.tsv": [*PAGES, "2\t1\thttp://c/"], "links.tsv": []}, "row 4: 3 values, but row 1 names 4 columns"),
        ({"pages.tsv": [*PAGES, "7\t1\tx\thttp://c/"], "links.tsv": []}, "row 4: page 7 in place of page 2"),
        ({"pages.tsv": [*PAGES, "2\t-1\tx\thttp://c/"], "links.tsv": []}, "row 4: '-1' is not an integer"),
        ({"pages.tsv": [*PAGES, "2\t1\tx\t"], "links.tsv": []}, "row 4: the URL is missing"),
        ({"pages.tsv": b"#id\turl\n0\thttp://\xff\n", "links.tsv": []}, "pages.tsv, row 2: byte 8 is not UTF-8"),
        ({"pages.tsv": ["#id\tcrawled\turl", "0\t2\thttp://a/"], "links.tsv": []}, "crawled is '2'; write 0 or 1"),
        ({"pages.tsv": PAGES, "links.tsv": ["0\t1", "1\t2"]}, "links.tsv, row 2: page 2, but pages are numbered 0..1"),
        ({"pages.tsv": PAGES, "links.tsv": ["0\t1", "", "1\t0"]}, "links.tsv, row 2: empty"),
        ({"pages.tsv": PAGES, "links.tsv": ["0\t-"]}, "links.tsv, row 1: '-' is not an integer"),
        ({"pages.tsv": PAGES, "links.tsv": [f"0\t{HUGE}"]}, f"links.tsv, row 1: '{HUGE}' is not an integer"),
        (
            {"pages.tsv": PAGES, "links.tsv": [], "uncrawled.tsv": ["#id\turl", "1\thttp://c/"]},
            "in place of page 2",
        ),
        ({"pages.tsv": PAGES, "links.tsv.gz": b"x"}, "links.tsv.gz, row 1: not a gzip file"),
        # numbered tables
        ({"w.dat": ["start end", "1 1"]}, "links.dat (or links.dat.gz) is missing; it belongs to w.dat"),
        ({"links.dat": ["link url", "1 http://a/"]}, "links.dat: the .dat file of links"),
        (
            {"w.dat": ["start end", "1 2"], "links.dat": ["link url", "1 http://a/"]},
            "row 2: page 2, but pages are numbered 1..1",
        ),
        (
            {"w.dat": ["start end", "0 1"], "links.dat": ["link url", "1 http://a/"]},
            "row 2: page 0, but pages are numbered 1..1",
        ),
        ({"w.dat": ["start end", "1"], "links.dat": ["link url", "1 http://a/"]}, "w.dat, row 2: 1 values"),
        ({"w.dat": ["start end"], "links.dat": ["link url", "2 http://a/"]}, "row 2: page 2 in place of page 1"),
        ({"w.dat": ["start end"], "links.dat": ["link url", "1 "]}, "links.dat, row 2: the URL is missing"),
        ({"w.dat": ["start end"], "links.dat": ["link url", "x http://a/"]}, "row 2: 'x' is not an integer"),
        ({"w.dat": ["start end"], "links.dat": ["link url"]}, "links.dat, row 2: missing"),
        ({"w.dat": ["start end"], "links.dat": ["1 http://a/"]}, "links.dat, row 1: not the heading `link url`"),
        ({"w.dat": ["start end"], "links.dat": b"link url\n1 http://\xff\n"}, "links.dat, row 2: byte 8 is not UTF-8"),
        # page and link rows
        ({"g": ["n 0 http://a/", "n 2 http://b/"]}, "g, row 2: page 2 in place of page 1"),
        ({"g": ["n 0 http://a/", "e 0 1"]}, "g, row 2: page 1, but pages are numbered 0..0"),
        ({"g": ["n 0 http://a/", "e 0"]}, "g, row 2: 1 values"),
        ({"g": ["n 0 http://a/", "e 0 -1"]}, "g, row 2: '-1' is not an integer"),
        ({"g": ["n 0 http://a/", "x 0 1"]}, "g, row 2: begins with 'x'"),
        ({"g": ["n 0 http://a/", "n 1 "]}, "g, row 2: the URL is missing"),
        ({"g": b"n 0 http://a/\nn 1 http://\xff\n"}, "g, row 2: byte 8 is not UTF-8"),
        # WebGraph text
        ({"w.graph-txt": ["2", "1"]}, "w.graph-txt, row 3: missing: row 1 announces 2 pages"),
        ({"w.graph-txt": ["1", "0", "0"]}, "w.graph-txt, row 3: one row too many"),
        ({"w.graph-txt": ["2", "1", "2"]}, "w.graph-txt, row 3: page 2, but pages are numbered 0..1"),
        ({"w.graph-txt": ["2", "1", "-"]}, "w.graph-txt, row 3: '-' is not an integer"),
        ({"w.graph-txt": ["0"]}, "w.graph-txt, row 1: 0 pages"),
        ({"w.graph-txt": [HUGE]}, "w.graph-txt, row 1: '9"),
        ({"w.graph-txt": []}, "w.graph-txt, row 1: '' is not an integer"),
        ({"w.graph-txt.gz": b""}, "w.graph-txt.gz, row 1: not a gzip file"),
    ],
)
def test_an_error_is_one_line_with_file_and_row(
    tmp_path: Path, files: dict[str, list[str] | bytes], message: str
) -> None:
    for name, content in files.items():
        if isinstance(content, bytes):
            (tmp_path / name).write_bytes(content)
        else:
            text(tmp_path / name, content)
    with pytest.raises(ConfigError) as error:
        load_graph(tmp_path)
    assert message in str(error.value)
    assert str(tmp_path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("example", [e for e in (*examples.WITH_URLS, *examples.WITHOUT_URLS) if e != examples.saved])
def test_a_gzip_file_that_ends_too_early_is_named(tmp_path: Path, example: Example) -> None:
    path = example(tmp_path)
    for file in list(tmp_path.rglob("*.gz")):
        whole = file.read_bytes()
        for cut in (len(whole) - 4, len(whole) // 2, 5):
            file.write_bytes(whole[:cut])
            with pytest.raises(ConfigError, match=rf"{file.name}, row \d+: the gzip file ends too early"):
                load_graph(path)
        file.write_bytes(whole)


def test_the_block_size_does_not_change_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = examples.edges(tmp_path)
    whole = load_graph(path)
    for size in (1, 2, 7, 30):
        monkeypatch.setattr("trapline.graph.formats.textfile._BLOCK_BYTES", size)
        assert_equal(load_graph(path), whole)
        (path / "edges.tsv").write_text("0 1\n1 0\n2 x\n")
        with pytest.raises(ConfigError, match="row 3: 'x' is not an integer"):
            load_graph(path)
        examples.edges(tmp_path)
