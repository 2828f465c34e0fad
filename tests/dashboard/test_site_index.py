"""The table of sites equals a naive twin, which sorts and filters a list of dicts, for random sites, queries and pages."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.crawler.files.site_table import ROW, STATES, SiteTable
from trapline.dashboard.site_index import FILTERS, PER_PARTITION, SORTS, Abandoned, SiteIndex, SiteReader

WORDS = ("a", "ab", "b.a", "news", "shop")
NUMBERS = st.integers(0, 3)
TIMES = st.one_of(st.just(math.nan), st.sampled_from([0.5, 1.0, 2.0]))


@st.composite
def readers(draw: st.DrawFn) -> SiteReader:
    """A partition with some sites, of which the table knows some."""
    reader = SiteReader(Path("/nowhere"))
    count = draw(st.integers(0, 12))
    reader.origins = [f"http://{draw(st.sampled_from(WORDS))}{site}.example" for site in range(count)]
    rows = np.zeros(draw(st.integers(0, 14)), ROW)
    for row in rows:
        for name in ("waiting", "known", "taken", "failures", "requests", "per_connection"):
            row[name] = draw(NUMBERS)
        for name in ("next_at", "delay_s", "response_s", "connection_s"):
            row[name] = draw(TIMES)
        row["budget"], row["state"] = draw(st.integers(-1, 2)), draw(st.integers(0, len(STATES) - 1))
    reader.table = SiteTable("live", 5.0, 0.0, rows)
    reader.robots._grow(count)
    for site in range(count):
        reader.robots.status[site] = draw(st.sampled_from([-1, 0, 200, 404, 503]))
        reader.robots.unreachable[site] = reader.robots.status[site] in (0, 503)
    kinds = st.sampled_from(["visits", "blocked"])
    for site in draw(st.sets(st.integers(0, max(count - 1, 0)), max_size=count)):
        reader.abandoned[site] = Abandoned(1.0, draw(kinds), "because")
    return reader


def naive_rows(parts: list[SiteReader]) -> list[dict[str, Any]]:
    """Return all rows as one dict for each site, in the order of partition and number."""
    found = []
    for part, reader in enumerate(parts):
        for site, origin in enumerate(reader.origins):
            known = site < len(reader.table.rows)
            own = reader.table.rows[site] if known else None
            values = {
                name: None if own is None or np.isnan(own[name]) else own[name].item() for name in ROW.names or ()
            }
            gone = reader.abandoned.get(site)
            status = int(reader.robots.status[site])
            found.append(
                {
                    "id": part * PER_PARTITION + site,
                    "origin": origin,
                    "waiting": values["waiting"] or 0,
                    "known": values["known"] or 0,
                    "fetched": values["taken"] or 0,
                    "failures": values["failures"] or 0,
                    "next_visit_at": values["next_at"],
                    **{name: values[name] for name in ("delay_s", "response_s", "connection_s")},
                    "requests": values["requests"] or None,
                    "budget": values["budget"] if known and values["budget"] >= 0 else None,
                    "robots": None if status == -1 else status,
                    "state": (gone.kind if gone.kind == "blocked" else "abandoned") if gone else STATES[values["state"] or 0],
                    "unreachable": bool(reader.robots.unreachable[site]),
                    "moved": len(parts) > 1 and known and values["budget"] == 0 and not gone,
                }
            )  # fmt: skip
    return found


def naive_page(rows: list[dict[str, Any]], q: str, sort: str, descending: bool, only: str) -> list[int]:
    """Return the ids of the chosen sites in order."""
    delayed = ("site_delay", "address_delay", "back_off")
    tests = {
        "": lambda row: True,
        "waiting": lambda row: row["waiting"] > 0,
        "delayed": lambda row: row["state"] in delayed,
        "failing": lambda row: row["failures"] > 0,
        "robots": lambda row: row["unreachable"],
    }
    chosen = tests.get(only, lambda row: row["state"] == only)
    left = [row for row in rows if not row["moved"] and q in row["origin"] and chosen(row)]
    states = (*STATES, "abandoned", "blocked")

    def key(row: dict[str, Any]) -> Any:
        return states.index(row["state"]) if sort == "state" else row[sort]

    known = [row for row in left if key(row) is not None]
    known.sort(key=key, reverse=descending)  # a stable sort keeps the order of equal rows in both directions
    return [row["id"] for row in known + [row for row in left if key(row) is None]]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(readers(), min_size=1, max_size=3),
    st.sampled_from(["", "a", "ab", "example", "zzz", "1."]),
    st.sampled_from(SORTS),
    st.booleans(),
    st.sampled_from(FILTERS),
    st.integers(0, 5),
)
def test_a_page_is_that_of_the_naive_twin(
    parts: list[SiteReader], q: str, sort: str, descending: bool, only: str, first: int
) -> None:
    rows = naive_rows(parts)
    expected = naive_page(rows, q, sort, descending, only)
    index = SiteIndex(parts)
    for again in (index, SiteIndex(parts, index)):
        page = again.page(q, sort, descending, first, 4, only)
        assert [row["id"] for row in page["rows"]] == expected[first : first + 4]
        assert page["matching"] == len(expected) and page["total"] == sum(not row["moved"] for row in rows)
    by_id = {row["id"]: row for row in rows}
    for row in page["rows"]:
        twin = by_id[row["id"]]
        shown = ("origin", "waiting", "fetched", "known", "next_visit_at", "state", "budget", "requests", "response_s")
        assert {name: row[name] for name in shown} == {name: twin[name] for name in shown}
        assert index.row_of(row["id"]) == row


def test_a_site_that_does_not_exist_has_no_row() -> None:
    index = SiteIndex([SiteReader(Path("/nowhere"))])
    assert index.row_of(0) is None and index.row_of(PER_PARTITION) is None
    assert index.page("", "waiting", True, 0, 10)["rows"] == [] and index.source == "none"
