"""The archives of the store, as warcio reads them: any bytes are the same, and every digest is right."""

import io
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from tests.crawler.store_world import (
    CHUNKED,
    HEAD,
    NOT_MODIFIED,
    archived,
    batch,
    check_digests,
    failed,
    fetched,
    robots,
    unchanged,
)
from tests.effort import examples
from trapline.crawler.engine.records import Batch, Fetched, RobotsFetched
from trapline.crawler.files.layout import claim_new
from trapline.crawler.store.archive import Archive
from trapline.crawler.store.filing import Filing
from trapline.crawler.store.keeper import Keeper
from trapline.crawler.store.settings import StoreSettings
from trapline.crawler.store.tail import Tail
from trapline.crawler.store.warc import page_fields
from trapline.errors import ConfigError, InvariantError

MEASURES = StoreSettings(software="Trapline 0.1", user_agent="bot (+http://b.example)", operator="Ann", revisits=8)


def stored(
    folder: Path,
    fetches: Sequence[Fetched] = (),
    robots: Sequence[RobotsFetched] = (),
    settings: StoreSettings = MEASURES,
) -> Path:
    claim_new(folder, {}).release()
    keeper = Keeper(folder, settings)
    keeper.commit([Batch(1, [], [], [], list(fetches), list(robots), b"", None)])
    keeper.leave()
    return folder


def headers(record: object) -> dict[str, str]:
    return dict(record.rec_headers.headers)  # type: ignore[attr-defined]


def archive_of(scratch: str, fetches: Sequence[Fetched]) -> Path:
    """Write an archive alone, without a crawl, because that is quick."""
    folder = Path(scratch)
    (folder / "warc").mkdir()
    archive, index = Archive(folder / "warc", MEASURES, []), Tail(folder / "index.cdxj", 0)
    filing = Filing(archive, index, MEASURES)
    for f in fetches:
        filing.page(f)
    archive.flush()
    archive.close()
    index.close()
    return folder


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.binary(min_size=1), st.binary(max_size=4000), st.binary(min_size=1)), max_size=6))
def test_any_head_body_and_request_are_read_back(answers: list[tuple[bytes, bytes, bytes]]) -> None:
    fetches = [fetched(i, body, head=head, request=request) for i, (head, body, request) in enumerate(answers)]
    with tempfile.TemporaryDirectory() as scratch:
        records = [(record.rec_type, block) for *_, record, block in archived(archive_of(scratch, fetches))]
    expected: list[tuple[str, bytes]] = []
    large: set[bytes] = set()
    for head, body, request in answers:
        expected.append(("revisit", head) if body in large else ("response", head + body))
        expected.append(("request", request))
        large |= {body} if len(body) >= 1024 else set()
    assert records[1:] == expected


@settings(max_examples=examples(50))
@given(st.lists(st.binary(max_size=3000), min_size=1, max_size=5))
def test_warcio_finds_every_digest_right(bodies: list[bytes]) -> None:
    fetches = [fetched(i, body) for i, body in enumerate(bodies)]
    with tempfile.TemporaryDirectory() as scratch:
        (path,) = (archive_of(scratch, fetches) / "warc").iterdir()
        for record in ArchiveIterator(io.BytesIO(path.read_bytes()), check_digests="raise"):
            record.content_stream().read()
            assert record.digest_checker.passed is (True if record.rec_type == "response" else None)


def test_a_chunked_answer_keeps_its_chunks_and_its_digest_covers_the_body(tmp_path: Path) -> None:
    folder = stored(tmp_path / "c", [fetched(0, b"abcdef", head=CHUNKED, wire=b"6\r\nabcdef\r\n0\r\n\r\n")])
    assert check_digests(folder) == 1
    assert any(block.endswith(b"6\r\nabcdef\r\n0\r\n\r\n") for *_, block in archived(folder))


def test_an_archive_names_its_software_and_an_answer_its_address(tmp_path: Path) -> None:
    (_, _, _, info, block), (_, _, _, answer, _), (_, _, _, question, _) = archived(
        stored(tmp_path / "c", [fetched(0)])
    )
    assert info.rec_type == "warcinfo" and headers(info)["WARC-Filename"] == "trapline-00000.warc.gz"
    assert b"operator: Ann\r\n" in block and b"robots: obey\r\n" in block and b"software: Trapline 0.1\r\n" in block
    assert answer.rec_headers.protocol == "WARC/1.1"
    assert headers(answer)["WARC-Date"] == "2023-11-14T22:13:20.250000Z"
    assert headers(answer)["WARC-IP-Address"] == "192.0.2.7"
    assert headers(question)["WARC-Concurrent-To"] == headers(answer)["WARC-Record-ID"]


def test_a_repeated_body_is_a_revisit_that_names_the_first(tmp_path: Path) -> None:
    body = b"x" * 2000
    records = [r for *_, r, _ in archived(stored(tmp_path / "c", [fetched(0, body), fetched(5, body)]))]
    first, again = (r for r in records if r.rec_type in ("response", "revisit"))
    assert (first.rec_type, again.rec_type) == ("response", "revisit")
    assert headers(again)["WARC-Refers-To"] == headers(first)["WARC-Record-ID"]
    assert headers(again)["WARC-Refers-To-Target-URI"] == "http://site0.example/page0"
    assert headers(again)["WARC-Refers-To-Date"] == headers(first)["WARC-Date"]
    assert headers(again)["WARC-Payload-Digest"] == headers(first)["WARC-Payload-Digest"]
    assert headers(again)["WARC-Profile"].endswith("/1.1/revisit/identical-payload-digest")
    assert b'"mime": "warc/revisit"' in (tmp_path / "c" / "index.cdxj").read_bytes().splitlines()[1]


def test_small_truncated_and_long_forgotten_bodies_are_archived_again(tmp_path: Path) -> None:
    small = [fetched(i, b"x" * 1023) for i in range(2)]
    cut = [fetched(i, b"y" * 2000, truncated="length") for i in range(2)]
    forgotten = [fetched(i, b"%d" % (i % 9) * 2000) for i in range(18)]  # 8 digests are remembered
    kinds = [r.rec_type for *_, r, _ in archived(stored(tmp_path / "c", small + cut + forgotten))]
    assert "revisit" not in kinds
    assert kinds.count("response") == 22


def test_a_truncated_answer_gives_the_reason(tmp_path: Path) -> None:
    cut = [fetched(0, b"abc", truncated="time"), fetched(1, b"abd", truncated="no such reason")]
    found = [headers(r).get("WARC-Truncated") for *_, r, _ in archived(stored(tmp_path / "c", cut))]
    assert [reason for reason in found if reason] == ["time", "unspecified"]


def test_robots_txt_is_archived_with_a_digest_if_it_is_not_compressed(tmp_path: Path) -> None:
    coded = robots(1, b"rules", wire=b"\x1f\x8b...", head=HEAD)
    records = [r for *_, r, _ in archived(stored(tmp_path / "c", robots=[robots(0), coded]))]
    answers = [headers(r) for r in records if r.rec_type == "response"]
    assert [h["WARC-Target-URI"][-12:] for h in answers] == ["e/robots.txt", "e/robots.txt"]
    assert ["WARC-Payload-Digest" in h for h in answers] == [True, False]


def test_an_unanswered_request_has_no_record(tmp_path: Path) -> None:
    folder = stored(tmp_path / "c", [failed(0), failed(1)], [robots(0, b"", head=b"", error="connect")])
    assert archived(folder) == [] and not any((folder / "warc").iterdir())


def test_a_metadata_record_has_the_links_as_found(tmp_path: Path) -> None:
    measures = StoreSettings(metadata=True)
    *_, (_, _, _, record, block) = archived(stored(tmp_path / "c", [fetched(0)], settings=measures))
    assert record.rec_type == "metadata" and headers(record)["Content-Type"] == "application/warc-fields"
    assert block == b"fetchTimeMs: 20\r\noutlink: /a\r\noutlink: /b\r\n"


@given(st.lists(st.text()))
def test_a_link_cannot_end_its_line(links: list[str]) -> None:
    lines = page_fields(0.1, links).decode().split("\r\n")
    assert len(lines) == len(links) + 2 and all(line.isprintable() for line in lines)


def test_a_link_is_escaped_as_its_utf_8_bytes() -> None:
    assert page_fields(0.0, ["/a\u2028b", "/\x85", "/\n"]).splitlines()[1:] == [
        b"outlink: /a%E2%80%A8b",
        b"outlink: /%C2%85",
        b"outlink: /%0A",
    ]


@pytest.mark.parametrize("url", ["http://a/\r\nX: y", "http://a/ b", "http://ä/", "http://a/\x7f"])
def test_a_url_that_could_break_a_header_is_refused_and_leaves_nothing(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvariantError):
        stored(tmp_path / "c", [fetched(0), fetched(1, url=url)])
    assert not any((tmp_path / "c" / "warc").iterdir())


def test_an_operator_with_a_line_break_is_refused() -> None:
    with pytest.raises(ConfigError, match="operator must be one line"):
        StoreSettings(operator="Ann\r\nWARC-Type: response")


def test_a_full_archive_is_followed_by_the_next_and_the_index_names_the_file(tmp_path: Path) -> None:
    noise = [fetched(i, batch(i + 1).calls * 300) for i in range(30)]
    folder = stored(tmp_path / "c", noise, settings=StoreSettings(name="a", warc_bytes=2000))
    names = {name for name, *_ in archived(folder)}
    assert len(names) > 2 and {f"a-{i:05d}.warc.gz" for i in range(len(names))} == names
    lines = (folder / "index.cdxj").read_text().splitlines()
    assert {line.split('"filename": "')[1].split('"')[0] for line in lines} == names


def test_an_unchanged_page_is_a_revisit_of_our_copy(tmp_path: Path) -> None:
    """The copy was archived in the same commit, or in an earlier run."""
    first = fetched(0, b"<p>our copy", fingerprint=b"12345678")
    folder = stored(tmp_path / "c", [first, unchanged(0, 1_700_000_100.5)])
    keeper = Keeper(folder, StoreSettings())
    keeper.commit([Batch(2, [], [], [], [unchanged(0, 1_700_000_200.5)], [], b"", None)])
    keeper.close(lambda step: None)
    copied, *revisits = [(headers(r), block) for *_, r, block in archived(folder) if r.rec_type != "request"][1:]
    assert len(revisits) == 2 and copied[0]["WARC-Type"] == "response"
    for found, block in revisits:
        assert found["WARC-Type"] == "revisit" and block == NOT_MODIFIED and "WARC-Refers-To" not in found
        assert found["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
        assert found["WARC-Refers-To-Target-URI"] == found["WARC-Target-URI"] == first.url
        assert found["WARC-Refers-To-Date"] == copied[0]["WARC-Date"] != found["WARC-Date"]
        assert found["WARC-Payload-Digest"] == copied[0]["WARC-Payload-Digest"]


def test_the_index_has_no_status_for_unchanged_pages(tmp_path: Path) -> None:
    copy = fetched(0, fingerprint=b"12345678")
    folder = stored(tmp_path / "c", [copy, unchanged(0, 1_700_000_100.5), unchanged(1, 1_700_000_100.5)])
    lines = [json.loads(line.split(" ", 2)[2]) for line in (folder / "index.cdxj").read_text().splitlines()]
    assert [(line["mime"], line["status"]) for line in lines] == [
        ("text/html", "200"),
        ("warc/revisit", "-"),
        ("warc/revisit", "-"),
    ]
    assert lines[0]["digest"] == lines[1]["digest"] and lines[2]["digest"] == "-"  # there is no copy of the last page


def test_an_unexpected_304_is_archived_as_received(tmp_path: Path) -> None:
    odd = unchanged(0, 1_700_000_100.5)._replace(changed=-1, result=5, error="http")
    kinds = [r.rec_type for *_, r, _ in archived(stored(tmp_path / "c", [odd]))]
    assert kinds == ["warcinfo", "response", "request"]
