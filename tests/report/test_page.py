"""The page of a comparison: one complete file, safe with any name, with every number of the table."""

import json
import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest

from tests.report.records import made_up_record
from trapline.report import compare_page
from trapline.report.html import GREYS
from trapline.report.table import NARROW, Column, columns
from trapline.simulator.network import Network
from trapline.units import time_unit

EVIL = "<script>alert(1)</script>\"'&</title></style>"
LINK = Network(bandwidth=50_000.0)
VOID = {"meta", "input", "link", "br"}


class Reader(HTMLParser):
    """Elements in order, and whether they are closed in the order in which they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def page() -> str:
    records = [made_up_record(seed, EVIL if seed == 0 else f"strategy {seed}", network=LINK) for seed in range(14)]
    return compare_page(records, f"Title {EVIL}", f"Subtitle {EVIL}", {f"setting {EVIL}": f"value {EVIL}", "r": 3})


def test_every_string_of_the_user_is_escaped(page: str) -> None:
    assert EVIL not in page
    read = Reader(page)
    assert not read.open
    assert len(read.of("script")) == 2 and len(read.of("style")) == 1 and len(read.of("title")) == 1
    assert read.text.count(EVIL) == 7  # title twice, subtitle, table, legend, and the name and value of a setting
    assert escape(EVIL) in page


def test_the_page_loads_nothing(page: str) -> None:
    read = Reader(page)
    for _, attributes in read.found:
        assert not {"src", "href", "srcset", "action"} & attributes.keys()
    assert "url(" not in page and "@import" not in page and "http" not in re.sub("http-equiv", "", page)
    policy = next(meta for meta in read.of("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in str(policy["content"])


def test_fourteen_strategies_fit_in_two_megabytes(page: str) -> None:
    assert len(page.encode()) < 2_000_000


def test_every_chart_works_without_javascript(page: str) -> None:
    read = Reader(page)
    pictures = [svg for svg in read.of("svg") if svg.get("class") == "chart"]
    assert [svg["data-name"] for svg in pictures] == [
        "quality-pages",
        "quality-time",
        "pages-time",
        "connections-time",
        "waste-time",
        "pagerank-depth",
        "pagerank-time",
        "batch-connections",
    ]
    curves = [group for group in read.of("g") if (group.get("class") or "").startswith("k3 ")]
    assert len(curves) == len(pictures)
    assert "body:has(#show13:not(:checked)) .k13" in page
    assert not any("nan" in path or "inf" in path for path in re.findall(r' d="([^"]*)"', page))


def test_the_script_has_the_data_of_every_line(page: str) -> None:
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])
    for chart in data.values():
        assert [line["index"] for line in chart["lines"] if line["index"] >= 0] == list(range(14))
        assert all(len(line["x"]) == len(line["y"]) for line in chart["lines"])
        assert {line["index"] for line in chart["lines"] if line["index"] < 0} <= set(GREYS)
    assert data["quality-pages"]["lines"][0]["name"] == EVIL


def test_every_number_of_the_table_is_on_the_page_with_its_meaning() -> None:
    records = [made_up_record(seed, network=LINK) for seed in range(3)]
    page = compare_page(records, "a")
    for column in columns(records):
        assert escape(column.about) in page
        if column.same:
            assert f"{escape(column.name)} <b>{escape(column.texts[0])}</b>" in page
        else:
            assert f">{escape(column.name)}</button>" in page
            assert all(f">{escape(text)}</td>" in page for text in column.texts)


def test_a_column_with_equal_values_becomes_a_line_below_the_table() -> None:
    same = {column.name for column in columns([made_up_record(seed) for seed in range(3)]) if column.same}
    assert {"pages", "visits"} <= same and "Kendall's tau" not in same
    assert not any(column.same for column in columns([made_up_record(1)]))


@pytest.mark.parametrize(("broken", "cells"), [(0, 0), (3, 2)])
def test_broken_rules_are_shown_for_each_crawl_even_if_equal(broken: int, cells: int) -> None:
    records = [replace(made_up_record(seed), politeness_violations=broken) for seed in range(2)]
    assert compare_page(records, "a").count('<td class="bad"') == cells


def test_a_column_of_times_has_one_unit_and_names_it() -> None:
    """One crawl takes hours and the other days: both are shown in days, as on the axis."""
    short = made_up_record(1)
    until = {share: seconds * 1000 for share, seconds in short.seconds_until.items()}
    long = replace(short, simulated_seconds=short.simulated_seconds * 1000, seconds_until=until)
    size, unit, _ = time_unit(long.simulated_seconds)
    found = [column for column in columns([short, long]) if "until … of the PageRank" in column.group]
    assert [column.name.replace(NARROW, " ") for column in found] == ["50 %", "80 %", "95 %", "end"]
    for column in found:
        assert column.group.startswith(f"simulated {unit} until")
        for value, text in zip(column.values, column.texts, strict=True):
            assert float(text.replace(",", "")) == pytest.approx(value / size, rel=0.006)


def test_the_best_value_is_marked_unless_all_are_equal() -> None:
    assert Column("", "", "", [1.0, 3.0, 3.0], ["1", "3", "3"], better=1).best == {1, 2}
    assert Column("", "", "", [1.0, None, 3.0], ["1", "–", "3"], better=-1).best == {0}
    assert Column("", "", "", [1.0, 1.001], ["1", "1"], better=1).best == set()
    assert Column("", "", "", [1.0, 2.0], ["1", "2"]).best == set()


def test_a_crawl_that_fetched_nothing_has_a_page() -> None:
    assert not Reader(compare_page([made_up_record(1, pages=0, network=LINK)], "nothing")).open


def test_equal_records_give_equal_pages() -> None:
    records = [made_up_record(1), made_up_record(2)]
    assert compare_page(records, "a") == compare_page(records, "a")
