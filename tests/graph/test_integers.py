"""Reading in bulk gives the same as reading row by row: numbers, sites and home pages, against slow twins."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.errors import ConfigError
from trapline.graph.formats.integers import Numbering, number_rows, page_number, pairs, tokens_of
from trapline.graph.sites import NO_HOST, site_of, sites_of
from trapline.graph.strings import StoredStrings

words = st.sampled_from(["0", "1", "7", "12", "-", "-1", "+1", "x", "1x", "9" * 18, "9" * 19, "1_0", "é", "٣", ","])
gaps = st.sampled_from([" ", "\t", ",", "  ", " \r", "\x0b", "\x0c"])
lines = st.lists(st.tuples(words, gaps), max_size=4).map(lambda parts: "".join(word + gap for word, gap in parts))
texts = st.lists(lines | st.just("0\t1") | st.just("#0 1"), max_size=6).map("\n".join)


def slow_pairs(file: Path, numbering: Numbering) -> list[tuple[int, ...]] | None:
    found = []
    for row in file.read_bytes().split(b"\n")[: None if file.read_bytes()[-1:] not in (b"\n", b"") else -1]:
        if not row.startswith(b"#"):
            try:
                found.append(tuple(page_number(file, 1, token, numbering) for token in tokens_of(row)))
            except ConfigError:
                return None
            if len(found[-1]) != 2:
                return None
    return found


@given(texts, st.sampled_from([Numbering(10), Numbering(10, base=1), Numbering(10**18)]))
@settings(max_examples=examples(300))
def test_pairs_equal_those_of_split_rows(text: str, numbering: Numbering) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "edges"
        file.write_bytes(text.encode())
        try:
            firsts, seconds = pairs(file, numbering)
            fast = list(zip(firsts.tolist(), seconds.tolist(), strict=True))
        except ConfigError:
            fast = None
        assert fast == slow_pairs(file, numbering)


@given(texts, st.booleans())
@settings(max_examples=examples(300))
def test_number_rows_equal_split_rows(text: str, dashes: bool) -> None:
    numbering = Numbering(100)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rows"
        file.write_bytes((text + "\n").encode())
        try:
            blocks = list(number_rows(file, numbering, dashes=dashes))
            fast = [v.tolist() for _, ends, values in blocks for v in split_at(values, ends)]
        except ConfigError:
            fast = None
        assert fast == slow_rows(file, numbering, dashes)


def split_at(values, ends):  # type: ignore[no-untyped-def]
    return [values[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def slow_rows(file: Path, numbering: Numbering, dashes: bool) -> list[list[int]] | None:
    found = []
    for row in file.read_bytes().split(b"\n")[:-1]:
        tokens = tokens_of(row)
        if dashes and not tokens:
            return None
        try:
            kept = [] if dashes and tokens == [b"-"] else tokens
            found.append([page_number(file, 1, token, numbering) for token in kept])
        except ConfigError:
            return None
    return found


pieces = st.sampled_from(
    ["http", "HTTP", "https", "f+1.-", "1a", ":", "/", "//", "://", "a", "B.c", ":80", ":443", "?", "#", "é", " ", ""]
)
urls = st.lists(pieces, min_size=1, max_size=8).map("".join).filter(bool)


@given(st.lists(urls, min_size=1, max_size=12))
@settings(max_examples=examples(400))
def test_sites_home_pages_and_dynamic_pages_equal_those_read_from_each_url(pages: list[str]) -> None:
    found = sites_of(StoredStrings.of(pages))
    names = [site_of(url) or NO_HOST for url in pages]
    assert found.names == list(dict.fromkeys(names))
    assert [found.names[site] for site in found.site] == names
    assert found.dynamic.tolist() == ["?" in url.partition("#")[0] for url in pages]
    for name, home in zip(found.names, found.home.tolist(), strict=True):
        own = [page for page in range(len(pages)) if names[page] == name]
        assert home == min(own, key=lambda page: (len(pages[page].encode()), pages[page].encode(), page))
