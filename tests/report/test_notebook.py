"""What notebooks show of results: escaped text, valid HTML, and images that are valid SVG and describe themselves."""

import base64
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import trapline
from tests.crawler.crawl_folder import simulated, write_crawl
from tests.crawler.small_server import small_server
from tests.hostile_text import ADDRESS, HOSTILE, SCRIPT
from trapline.api.simulation_result import Comparison
from trapline.report.chart import Chart, ChartLine, axis
from trapline.report.notebook import chart_image, comparison_html, image_svg, pairs_table, result_html

VOID = ("img", "br")


class Parsed(HTMLParser):
    """Checks that elements are closed in order, and collects texts and images."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.images: list[dict[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag == "img":
            self.images.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def svgs(self) -> list[ElementTree.Element]:
        found = []
        for image in self.images:
            kind, _, data = str(image["src"]).partition(";base64,")
            assert kind == "data:image/svg+xml" and image["alt"]
            found.append(ElementTree.fromstring(base64.b64decode(data)))
        return found


def parsed(html: str | None) -> Parsed:
    assert html is not None
    found = Parsed(html)
    assert found.names <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "strong", "div", "p", "img"}
    assert all(character >= " " or character in "\r\n" for text in found.texts for character in text)
    return found


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return trapline.compare("python-docs", ["breadth-first", "opic"], connections=4)


def test_a_comparison_has_a_row_per_crawl_its_best_values_and_one_chart(comparison: Comparison) -> None:
    found = parsed(comparison._repr_html_())
    assert {"breadth-first", "opic", "pages", "simulated hours until 50\xa0% of the PageRank"} <= set(found.texts)
    assert "strong" in found.names
    (svg,) = found.svgs()
    texts = [one.text for one in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"breadth-first", "opic", "random order"} <= set(texts)


def test_a_result_has_its_numbers_and_its_curve(comparison: Comparison) -> None:
    found = parsed(comparison["opic"]._repr_html_())
    assert f"opic on python-docs: {comparison['opic'].record.web_size}" in found.texts
    assert f"{comparison['opic'].record.pages_fetched:,}" in found.texts
    assert len(found.svgs()) == 1


def test_hostile_names_are_escaped(comparison: Comparison) -> None:
    record = replace(comparison["opic"].record, strategy=HOSTILE, label=HOSTILE, quality=HOSTILE)
    for html in (result_html(record, HOSTILE), comparison_html([record, record], HOSTILE, [HOSTILE])):
        assert SCRIPT not in html
        found = parsed(html)
        assert any(SCRIPT in text for text in found.texts)
        (svg,) = found.svgs()
        assert not list(svg.iter("{http://www.w3.org/2000/svg}script"))


def test_a_comparison_without_a_crawl_says_so() -> None:
    assert parsed(Comparison(HOSTILE, [], 2)._repr_html_()).names == {"p"}


def test_a_stored_crawl_shows_its_last_commit_and_pages_over_time(tmp_path: Path) -> None:
    folder = write_crawl(tmp_path / f"c{SCRIPT.replace('/', '')}", *simulated())
    crawl = trapline.open_crawl(folder)
    found = parsed(crawl._repr_html_())
    assert str(folder) in found.texts
    assert len(found.svgs()) == 1
    shutil.rmtree(folder)
    assert crawl._repr_html_() is None


def test_a_crawl_shows_its_numbers_when_it_has_ended(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"
    with small_server(lambda host, target: answer, (ADDRESS,)) as server:
        seed = f"http://{ADDRESS}:{server.port}/"
        for output, images in ((None, 0), (tmp_path / "c", 1)):
            crawl = trapline.crawl(seed, output=output, allow_private=True, delay=0)
            assert crawl._repr_html_() is None and repr(crawl) == f"<Crawl of {seed}: not begun>"
            crawl.run()
            found = parsed(crawl._repr_html_())
            assert "1 of 1 known" in found.texts and len(found.svgs()) == images
            assert repr(crawl) == f"<Crawl of {seed}: ended>"


def test_a_long_legend_has_a_place_for_every_line() -> None:
    lines = [ChartLine(at, f"{at} {'long ' * 20}", np.array([0.0, 1.0]), np.array([0.0, 1.0])) for at in range(9)]
    chart = Chart("name", "title", "", axis("x", 1.0), axis("y", 1.0), lines)
    svg = ElementTree.fromstring(image_svg(chart))
    height = float(svg.attrib["height"])
    places = [float(one.attrib["y"]) for one in svg.findall("{http://www.w3.org/2000/svg}text")]
    assert len(places) == 10 and max(places) < height
    assert parsed(chart_image(chart)).images


@pytest.mark.parametrize("value", [HOSTILE, "\ud800", "<b>", "&amp;"])
def test_a_table_escapes_names_values_and_captions(value: str) -> None:
    html = pairs_table([(value, value)], value)
    html.encode("utf-8")
    assert len([text for text in parsed(html).texts if text]) >= 3
