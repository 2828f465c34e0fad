"""The seen table is a dictionary from fingerprint to page, for any batches of input, and it can be saved and loaded."""

import ast
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.compiled import jit
from trapline.crawler.discovery.seen import LINKS_ELSEWHERE, Lookup, SeenTable
from trapline.crawler.discovery.seen.kernels import SEGMENTS, LookupArrays, keep_distinct
from trapline.crawler.discovery.seen.table import SMALLEST
from trapline.errors import ConfigError, InvariantError
from trapline.fetch.html.page import Links
from trapline.frontier.layout import Array

MOST = 2**64 - 1
MANY = 3_000 if jit.DISABLED else 60_000


def row(values: list[int]) -> Array:
    return np.array(values, np.uint64).view(np.int64)


def added(seen: SeenTable, values: Array, first: int) -> tuple[list[int], int]:
    out = np.full(len(values), -7, np.int32)
    new = seen.add(values, first, out)
    return out.tolist(), new


def found(seen: SeenTable, values: Array) -> list[int]:
    out = np.full(len(values), -7, np.int32)
    seen.find(values, out)
    return out.tolist()


def added_to_dict(pages: dict[int, int], values: list[int], first: int) -> tuple[list[int], int]:
    before = len(pages)
    for value in values:
        pages.setdefault(value, first + len(pages) - before)
    return [pages[value] for value in values], len(pages) - before


# Few different values, so that many repeat; values of one segment; the smallest and the largest; any.
FINGERPRINTS = st.one_of(
    st.integers(0, 30),
    st.integers(0, 400).map(lambda i: (7 << 56) + i * 0x01_0000_0001),
    st.sampled_from([0, 1, MOST, MOST - 1, 1 << 63, 1 << 56, (1 << 32) - 1]),
    st.integers(0, MOST),
)
PORTIONS = st.lists(st.tuples(st.lists(FINGERPRINTS, max_size=120), st.integers(0, 1_000_000)), max_size=8)


@settings(deadline=None, max_examples=20 if jit.DISABLED else examples(200))
@given(portions=PORTIONS, lookups=st.lists(FINGERPRINTS, max_size=20))
def test_the_table_is_like_a_dictionary(portions: list[tuple[list[int], int]], lookups: list[int]) -> None:
    seen, pages = SeenTable(), dict[int, int]()
    for values, first in portions:
        assert added(seen, row(values), first) == added_to_dict(pages, values, first)
        assert len(seen) == len(pages)
    lookups = [*lookups, *pages]
    assert found(seen, row(lookups)) == [pages.get(value, -1) for value in lookups]


def random_fingerprints(count: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(-(2**63), 2**63, count, dtype=np.int64)


@pytest.mark.parametrize("portion", [20, MANY], ids=["in portions", "at once"])
def test_the_table_grows_and_keeps_every_entry(portion: int) -> None:
    seen, values = SeenTable(), random_fingerprints(MANY, 1)
    for start in range(0, MANY, portion):
        pages, new = added(seen, values[start : start + portion], start)
        assert pages == list(range(start, start + len(pages))) and new == len(pages)
    assert found(seen, values) == list(range(MANY))
    assert set(found(seen, random_fingerprints(1_000, 2))) == {-1}
    assert added(seen, values[::-1].copy(), 7)[1] == 0


def test_a_segment_that_receives_every_entry_grows_alone() -> None:
    """Real fingerprints are never like this, but no input may break the table."""
    values = random_fingerprints(MANY // 10, 3) & (2**56 - 1)
    seen = SeenTable()
    assert added(seen, values, 0)[1] == len(values)
    assert found(seen, values) == list(range(len(values)))


def test_a_url_takes_at_most_24_bytes() -> None:
    seen = SeenTable()
    added(seen, random_fingerprints(MANY, 4), 0)
    slots = sum(slots.nbytes for slots in seen._slots)
    assert slots <= max(24 * MANY, SEGMENTS * SMALLEST * 12)


KEYLESS = 16 * b"\0"  # Python hashes bytes by this function if PYTHONHASHSEED is 0


def hashes_of_python(texts: list[bytes]) -> list[int]:
    """Compute the same function with another implementation."""
    code = f"import sys; assert sys.hash_info.algorithm == 'siphash13'; print([hash(text) for text in {texts!r}])"
    said = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True
    )
    numbers: list[int] = ast.literal_eval(said.stdout)
    return numbers


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="this Python hashes by another function")
def test_fingerprints_are_siphash_of_the_bytes() -> None:
    urls = ["http://a.example/", "http://a.example/b?c=d", *("x" * length for length in range(1, 70))]
    assert SeenTable(KEYLESS).fingerprints(urls).tolist() == hashes_of_python([url.encode() for url in urls])


def test_fingerprints_depend_on_the_key_and_each_crawl_has_its_own() -> None:
    assert SeenTable().fingerprints(["x"]) != SeenTable().fingerprints(["x"])
    one, other = (SeenTable(bytes(key) + 15 * b"x") for key in ([1], [2]))
    assert one.fingerprints(["x"]) != other.fingerprints(["x"])
    assert one.fingerprints([]).tolist() == []


def test_the_key_is_saved_with_the_table(tmp_path: Path) -> None:
    seen = SeenTable()
    seen.save(tmp_path)
    assert SeenTable.load(tmp_path).fingerprints(["http://a/"]) == seen.fingerprints(["http://a/"])


def test_a_worked_example() -> None:
    seen, out = SeenTable(), np.zeros(4, np.int32)
    new = seen.add(seen.fingerprints(["http://a/", "http://b/", "http://a/", "http://c/"]), 10, out)
    assert (new, out.tolist(), len(seen)) == (3, [10, 11, 10, 12], 3)


@pytest.mark.parametrize(
    ("values", "out"),
    [(np.zeros(3, np.uint64), np.zeros(3, np.int32)), (row([1, 2, 3]), np.zeros(2, np.int32))],
    ids=["not int64", "no room"],
)
def test_arrays_of_the_wrong_shape_or_type_are_refused(values: Array, out: Array) -> None:
    with pytest.raises(InvariantError):
        SeenTable().find(values, out)
    with pytest.raises(InvariantError):
        SeenTable().add(values, 0, out)


def test_more_pages_than_ids_are_refused() -> None:
    with pytest.raises(ConfigError, match="partitions"):
        added(SeenTable(), row([1, 2]), 2**31 - 2)


# ---- the file


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    seen = SeenTable()
    added(seen, np.append(random_fingerprints(2_000, 5), row([0, MOST])), 0)
    seen.save(tmp_path / "snapshot")
    return tmp_path / "snapshot"


def test_a_loaded_table_equals_the_saved_one(saved: Path) -> None:
    seen, values = SeenTable.load(saved), np.append(random_fingerprints(2_000, 5), row([0, MOST]))
    assert len(seen) == 2_002 and found(seen, values) == list(range(2_002))
    assert added(seen, random_fingerprints(2_000, 6), 2_002) == (list(range(2_002, 4_002)), 2_000)
    assert found(seen, values) == list(range(2_002))


def test_an_empty_table_can_be_saved(tmp_path: Path) -> None:
    SeenTable().save(tmp_path)
    assert len(SeenTable.load(tmp_path)) == 0 and found(SeenTable.load(tmp_path), row([0, 1])) == [-1, -1]


def test_a_second_save_replaces_the_first(saved: Path) -> None:
    seen = SeenTable()
    added(seen, row([5]), 0)
    seen.save(saved)
    assert len(SeenTable.load(saved)) == 1
    assert len(list(saved.iterdir())) == 1


def assert_refused(folder: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        SeenTable.load(folder)
    assert "\n" not in str(caught.value) and str(folder) in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path)


def test_a_file_that_is_cut_anywhere_is_refused(saved: Path) -> None:
    (file,) = saved.iterdir()
    whole = file.read_bytes()
    for cut in (0, 1, 4, 7, 8, 12, 2_071, 2_072, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        assert_refused(saved)


def test_a_file_with_a_flipped_bit_or_more_bytes_is_refused(saved: Path) -> None:
    (file,) = saved.iterdir()
    whole = file.read_bytes()
    for at in (0, 7, 8, 20, 30, 5_000, len(whole) - 1):
        bad = bytearray(whole)
        bad[at] ^= 1
        file.write_bytes(bad)
        assert_refused(saved)
    file.write_bytes(whole + b"\0")
    assert_refused(saved)


def test_a_failed_save_keeps_the_previous_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = SeenTable()
    added(seen, row([5]), 0)
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(ConfigError):
        seen.save(saved)
    assert len(SeenTable.load(saved)) == 2_002


# ---- the lookup


@given(
    st.lists(st.integers(0, 12), max_size=30),
    st.sets(st.integers(0, 12), max_size=2),
    st.integers(0, 13),
    st.sampled_from([-1, -3, -5, LINKS_ELSEWHERE, LINKS_ELSEWHERE - 3]),
)
def test_pages_come_once_if_all_links_lead_to_known_pages_without_marks(
    numbers: list[int], marked: set[int], marks: int, result: int
) -> None:
    """`marks`: the length of the array of marks. The last two numbers are no known pages. `result`: what is remembered of those; -1:
    nothing."""
    seen = SeenTable()
    added(seen, seen.fingerprints([f"http://a.org/{number}" for number in range(11)]), 0)
    lookup = Lookup(seen)
    lookup.mark(np.array([page in marked for page in range(marks)], np.uint8))
    links, url = Links.of([f"/{number}" for number in numbers]), b"http://a.org/x"
    pages, _ = lookup.find(links, url)
    for at, page in enumerate(pages.tolist()):
        if page < 0:
            lookup.remember(at, result)
    by_link, elsewhere = lookup.find(links, url)
    expected = [number if number < 11 else result for number in numbers]
    assert by_link.tolist() == expected and elsewhere == -1
    found_pages, elsewhere = lookup.find(links, url, wants_distinct=True)
    are_known = [page <= LINKS_ELSEWHERE or (page >= 0 and not (page in marked and page < marks)) for page in expected]
    assert (elsewhere >= 0) == all(are_known)
    if elsewhere < 0:
        assert found_pages.tolist() == expected
        return
    theirs = [number for number in numbers if number >= 11]
    assert found_pages.tolist() == [*dict.fromkeys(page for page in expected if page >= 0), *[result] * len(theirs)]
    assert lookup.elsewhere(elsewhere) == seen.fingerprints([f"http://a.org/{number}" for number in theirs]).tolist()


def test_marks_that_change_later_count() -> None:
    seen, marks = SeenTable(), np.zeros(2, np.uint8)
    added(seen, seen.fingerprints(["http://a.org/0", "http://a.org/1"]), 0)
    lookup, links = Lookup(seen), Links.of(["/1", "/0", "/1"])
    lookup.mark(marks)
    assert lookup.find(links, b"http://a.org/", True)[0].tolist() == [1, 0]
    marks[0] = 1
    assert lookup.find(links, b"http://a.org/", True)[0].tolist() == [1, 0, 1]


def test_pages_of_many_and_of_few_links_come_once() -> None:
    seen = SeenTable()
    added(seen, seen.fingerprints([f"http://a.org/{number}" for number in range(3_000)]), 0)
    lookup = Lookup(seen)
    for count in (1, 511, 3_000, 512, 513, 0, 2_600):  # the arrays grow, and large ones are not kept
        numbers = [number * 7 % 3_001 % 3_000 for number in range(count)] * 2
        pages, elsewhere = lookup.find(Links.of([f"/{n}" for n in numbers]), b"http://a.org/", True)
        assert elsewhere == 0 and pages.tolist() == list(dict.fromkeys(numbers))


class CountedReads(list[int]):
    reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return super().__getitem__(at)


@given(st.randoms(use_true_random=True))
def test_links_that_are_chosen_to_share_slots_take_no_longer(source: random.Random) -> None:
    """Page numbers are given in order, so that a site knows which of its pages are equal in their last bits."""
    links, size, key = 400, 1024, source.getrandbits(64) - 2**63
    for step in (1, size // 4, size):
        slots, pages = CountedReads([-1] * size), [step * (number % 8) + number // 8 for number in range(links)]
        none: Any = None
        desk = LookupArrays(none, none, none, none, list(pages), slots, none)  # type: ignore[arg-type]
        distinct = getattr(keep_distinct, "py_func", keep_distinct)(desk, links, key)
        assert distinct == len(set(pages)) and slots.reads < 4 * links
