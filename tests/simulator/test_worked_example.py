"""docs/worked-example.md is true: the web, the log and the picture are read from the page and compared with a simulation."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.naive.simulator import Row, Twin
from tests.simulator.test_driver import graph_of, rows
from trapline.frontier import FETCHED, Rules
from trapline.graph import Graph
from trapline.simulator import Network, Servers, politeness_violations, simulate
from trapline.strategies import pair

TEXT = (Path(__file__).parents[2] / "docs" / "worked-example.md").read_text()
RULES = Rules(delay_s=4.0, per_connection=2, lease_s=math.inf)
NETWORK = Network(bandwidth=10.0)
CONNECTIONS = 2


def table(first_column: str) -> list[dict[str, str]]:
    """The table whose first column has this name."""
    lines = TEXT[TEXT.index(f"| {first_column} |") :].split("\n\n")[0].splitlines()
    head, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in body]


def log_table() -> list[dict[str, str]]:
    return table("page | visit")


def number(cell: str) -> float:
    return math.inf if cell == "no limit" else float(cell.split()[0])


def column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    return np.array([number(row[name]) for row in rows])


SITES, PAGES = table("site"), table("page | latency")
NAMES = [row["page"] for row in PAGES]


def web() -> Graph:
    site_names = [row["site"].lower() for row in SITES]
    links = [[NAMES.index(name) for name in row["links to"].replace(",", "").split()] for row in PAGES]
    return graph_of(links, [site_names.index(name[0]) for name in NAMES], [0, 1, 2])


def servers() -> Servers:
    requests = column(SITES, "requests")
    return Servers(
        connection_s=column(SITES, "connection"),
        latency_s=column(PAGES, "latency"),
        speed=column(SITES, "speed"),
        requests=np.where(np.isinf(requests), 0, requests).astype(np.int32),
        keep_alive_s=np.array([math.inf]),
        size=column(PAGES, "size"),
    )


def crawled() -> list[Row]:
    return rows(
        simulate(web(), pair("fifo", "fifo"), RULES, connections=CONNECTIONS, servers=servers(), network=NETWORK).log
    )


def test_the_example_has_three_sites_six_pages_and_one_server_that_closes() -> None:
    assert len(SITES) == 3 and len(PAGES) == 6
    assert servers().requests.tolist() == [0, 0, 1]


def test_every_moment_of_the_log_is_as_on_the_page() -> None:
    """To the last bit, because all numbers involved are whole."""
    said = [
        Row(
            NAMES.index(r["page"]),
            int(r["visit"]),
            *(float(r[name]) for name in ("start", "first byte", "end")),
            FETCHED,
        )
        for r in log_table()
    ]
    assert crawled() == said


def test_the_slow_twin_gives_the_same_log() -> None:
    twin = Twin(
        web(),
        pair("fifo", "fifo"),
        RULES,
        connections=CONNECTIONS,
        servers=servers(),
        network=NETWORK,
        inputs={},
        draw=lambda page, tries: 0.5,
    )
    assert twin.run() == crawled()


def test_the_example_is_polite() -> None:
    log = simulate(web(), pair("fifo", "fifo"), RULES, connections=CONNECTIONS, servers=servers(), network=NETWORK).log
    assert politeness_violations(log, web().site, web().ips, RULES) == 0


# The picture.


def draw_connections(log: list[Row]) -> list[str]:
    """A visit goes to the first connection that is free at its start, and its pages follow."""
    lines, owner = [[" "] * 24 for _ in range(CONNECTIONS)], {}
    connection_s = servers().connection_s
    for row in sorted(log, key=lambda row: row.start):
        first = row.visit not in owner
        if first:
            owner[row.visit] = next(i for i in range(CONNECTIONS) if lines[i][int(row.start)] == " ")
        line, open_s = lines[owner[row.visit]], float(connection_s[web().site[row.page]]) if first else 0.0
        paint(line, row.start, row.start + open_s, "o")
        paint(line, row.start + open_s, row.first_byte, ".")
        paint(line, row.first_byte, row.end, "=")
    return ["".join(line).rstrip() for line in lines]


def paint(line: list[str], since: float, until: float, sign: str) -> None:
    line[int(since) : int(until)] = sign * int(until - since)


def draw_link(log: list[Row]) -> str:
    """What the link carries in each second: its bandwidth, or what the active transfers can send."""
    line: list[Any] = []
    for second in range(24):
        speeds = [servers().speed[web().site[r.page]] for r in log if r.first_byte <= second < r.end]
        carried = int(min(NETWORK.bandwidth, sum(speeds)))
        line.append({0: " ", 10: "X"}.get(carried, str(carried)))
    return "".join(line).rstrip()


@pytest.mark.parametrize(("name", "which"), [("connection 1", 0), ("connection 2", 1), ("link", 2)])
def test_the_picture_shows_the_log(name: str, which: int) -> None:
    log = crawled()
    assert f"\n{name:15}{[*draw_connections(log), draw_link(log)][which]}\n" in TEXT


def test_the_sum_of_bytes_on_the_page_is_right() -> None:
    size = int(servers().size.sum())
    assert f"The {size} bytes would take {size / NETWORK.bandwidth} s" in TEXT
