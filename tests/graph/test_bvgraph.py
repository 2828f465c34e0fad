"""WebGraph's compressed graphs: encoded graphs are read back, and damaged bits give a one-line error or a valid graph."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.naive import bvgraph
from trapline.compiled import jit
from trapline.errors import ConfigError
from trapline.graph import Graph, load_graph
from trapline.graph.graph import fault

plans = st.builds(
    bvgraph.Plan,
    codes=st.fixed_dictionaries({}, optional={field: st.sampled_from(c) for field, c in bvgraph.CODES.items()}),
    window=st.sampled_from([0, 1, 7]),
    least_interval=st.sampled_from([0, 1, 2, 3, 4]),
    zeta_k=st.integers(1, 7),
)


def random_rows(chance: Random, pages: int) -> list[list[int]]:
    """Rows that resemble their predecessors, with runs, for which the format is made."""
    rows: list[set[int]] = []
    for _ in range(pages):
        row = {target for target in (chance.choice(rows) if rows else ()) if chance.random() < 0.7}
        for _ in range(chance.choice([0, 0, 1, 3])):
            start = chance.randrange(pages)
            row.update(range(start, min(pages, start + chance.choice([1, 1, 2, 5, 9]))))
        rows.append(row if chance.random() < 0.8 else set())
    return [sorted(row) for row in rows]


def rows_of(graph: Graph) -> list[list[int]]:
    return [graph.targets_of(page).tolist() for page in range(graph.pages)]


@given(plans, st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=examples(150))
def test_an_encoded_graph_is_read_back(plan: bvgraph.Plan, pages: int, seed: int) -> None:
    chance = Random(seed)
    rows = random_rows(chance, pages)
    with TemporaryDirectory() as folder:
        assert rows_of(load_graph(bvgraph.write(Path(folder), rows, plan, chance))) == rows


@given(plans, st.integers(0, 2**32), st.data())
@settings(max_examples=examples(300))
def test_damaged_bits_give_a_one_line_error_or_a_valid_graph(
    plan: bvgraph.Plan, seed: int, data: st.DataObject
) -> None:
    chance = Random(seed)
    with TemporaryDirectory() as folder:
        file = bvgraph.write(Path(folder), random_rows(chance, 30), plan, chance)
        bits = bytearray(file.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            bits[data.draw(st.integers(0, len(bits) - 1))] = data.draw(st.integers(0, 255))
        file.write_bytes(bits[: data.draw(st.integers(1, len(bits)))])
        try:
            graph = load_graph(file)
        except ConfigError as error:
            assert str(file) in str(error) and "\n" not in str(error)
        else:
            assert fault(graph) is None
            assert all(len(set(row)) == len(row) for row in rows_of(graph))


@given(st.binary(min_size=1, max_size=300), plans)
@settings(max_examples=examples(200))
def test_any_bytes_give_a_one_line_error_or_a_valid_graph(noise: bytes, plan: bvgraph.Plan) -> None:
    with TemporaryDirectory() as folder:
        file = bvgraph.write(Path(folder), [[1]] * 8, plan, Random(1))
        file.write_bytes(noise)
        properties = file.with_suffix(".properties")
        properties.write_text(properties.read_text().replace("arcs=8", "arcs=64"))
        try:
            assert fault(load_graph(file)) is None
        except ConfigError as error:
            assert "\n" not in str(error)


ROWS = [[1, 2, 3, 4, 5], [2, 3, 4], [], [0, 1, 2, 3, 4, 5], [5], [0]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nodes=6", "nodes=0", "web.properties, row 4: nodes is '0'; it must be in 1.."),
        ("nodes=6", "nodes=-6", "row 4: nodes is '-6'"),
        ("nodes=6", "nodes=6000", "bytes cannot hold the 6000 pages"),
        ("nodes=6", "nodes=99999999999999999999", "nodes is '99999999999999999999'"),
        ("nodes=6\n", "", "nodes is missing"),
        ("nodes=6", "nodes", "row 4: 'nodes' is not of the form NAME=VALUE"),
        ("arcs=16", "arcs=15", "web.graph, page 5, bit"),
        ("arcs=16", "arcs=17", "has 16 links, its properties say 17"),
        ("arcs=16", "arcs=37", "arcs is '37'; it must be in 0..36"),
        ("windowsize=7", "windowsize=x", "windowsize is 'x'"),
        (
            "compressionflags=",
            "compressionflags=RESIDUALS_GOLOMB",
            "compression flag 'RESIDUALS_GOLOMB' is not supported",
        ),
        ("BVGraph\nversion", "EFGraph\nversion", "graphclass is 'it.unimi.dsi.webgraph.EFGraph', only BVGraph"),
        ("version=0", "version=0\nendianness=little", "endianness is 'little', only big"),
        ("zetak=3", "zetak=0", "zetak is '0'; it must be in 1..40"),
    ],
)
def test_wrong_properties_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = bvgraph.write(tmp_path, ROWS, bvgraph.Plan({}), Random(1))
    properties = file.with_suffix(".properties")
    assert old in properties.read_text()
    properties.write_text(properties.read_text().replace(old, new))
    with pytest.raises(ConfigError) as error:
        load_graph(tmp_path)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(("gone", "left"), [("graph", "properties"), ("properties", "graph")])
def test_a_missing_companion_is_named(tmp_path: Path, gone: str, left: str) -> None:
    file = bvgraph.write(tmp_path, ROWS, bvgraph.Plan({}), Random(1))
    file.with_suffix(f".{gone}").unlink()
    with pytest.raises(ConfigError, match=f"web.{gone} is missing; it belongs to web.{left}"):
        load_graph(tmp_path)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    file = bvgraph.write(tmp_path, ROWS, bvgraph.Plan({}), Random(1))
    file.write_bytes(b"")
    with pytest.raises(ConfigError, match=r"web\.graph: is empty"):
        load_graph(file)


@pytest.mark.skipif(jit.DISABLED, reason="3.2 million links take minutes uncompiled")
def test_the_compressed_form_of_a_real_graph_equals_its_text_form(recorded_data: Path) -> None:
    bits, text = (load_graph(recorded_data / "cnr-2000" / f"cnr-2000.{end}") for end in ("graph", "graph-txt.gz"))
    assert (bits.pages, bits.links) == (325_557, 3_216_152)
    assert np.array_equal(bits.offsets, text.offsets) and np.array_equal(bits.targets, text.targets)
