"""Suites that others wrote, case by case: how many Trapline answers as they do, and why not the others."""

import io
import lzma
import re
import tempfile
from base64 import b32encode
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple, TypeVar
from xml.etree import ElementTree

from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import ChunkedDataReader
from warcio.exceptions import ArchiveLoadFailed
from warcio.statusandheaders import StatusAndHeadersParser, StatusAndHeadersParserException

from tests.crawl.store_world import archived, fetched
from tests.crawl.test_warc import archive_of
from tests.fetch.test_encoding import as_html5lib_finds, html5lib_cases
from tests.fetch.test_headers import MIME_FILES, mime_cases, read_as_the_standard
from tests.fetch.test_http1 import READ_NEVERTHELESS, REFUSED_HERE, as_node_reads, nodes_cases
from tests.fetch.test_robots import AGAINST_THE_RFC, answers_as_google, conformance_cases
from tests.fetch.test_urls import canonical_passes, cases, library_passes
from tests.proof.section import SHARED_DATA, Finding, Section
from trapline.fetch.http.http1 import ResponseReader
from trapline.fetch.http.response import Response
from trapline.fetch.limits import Limits
from trapline.signals.published.discovery import of_robots
from trapline.signals.published.feed import read_feed
from trapline.signals.published.sitemap import read_sitemap

_METHOD = """
Each suite is one that others publish, at the commit that its folder names: the URL and MIME type tests of the Web Platform Tests,
Google's robots.txt cases, the responses of Node's parser llhttp, html5lib's encodings, web archives of eleven projects, and the sitemap
examples of ultimate-sitemap-parser. A case passes if Trapline answers as the suite does. A case that Trapline answers differently on
purpose is named with the reason; any other one makes the claim fail.
"""
_FAR = 2e9  # a moment after every date in the examples
_NAMED = 8  # failures that are named
_HEAD = re.compile(rb"HTTP/[^\r\n]*\r?\n([^\r\n]+\r?\n)*\r?\n")
Case = TypeVar("Case")


class Tried(NamedTuple):
    """What came of the cases of a suite."""

    cases: int
    passed: int
    unexplained: list[str]
    explained: dict[str, list[str]]  # by the reason

    def finding(self, claim: str) -> Finding:
        said = [f"{self.passed:,} of {self.cases:,} cases"]
        for reason, names in self.explained.items():
            said.append(f"{len(names)} {reason}: {_listed(names)}")
        if self.unexplained:
            said.append(f"{len(self.unexplained)} that are not explained: {_listed(self.unexplained)}")
        return Finding(claim, "; ".join(said), bool(self.cases) and not self.unexplained)


def _listed(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = [f"and {len(unique) - _NAMED} more"] if len(unique) > _NAMED else []
    return ", ".join(unique[:_NAMED] + more)


def tried(
    every: Iterable[Case],
    passes: Callable[[Case], bool],
    name: Callable[[Case], str],
    why: Callable[[Case], str] = lambda case: "",
) -> Tried:
    """`why`: for what reason a case may be answered differently; "": for none."""
    found = Tried(0, 0, [], {})
    for case in every:
        passed = passes(case)
        found = found._replace(cases=found.cases + 1, passed=found.passed + passed)
        if not passed:
            reason = why(case)
            (found.explained.setdefault(reason, []) if reason else found.unexplained).append(name(case))
    return found


def run(full: bool) -> Iterator[Finding]:
    """All of it in both forms: it takes a few seconds."""
    for folder, claim, measure in SUITES:
        if not (SHARED_DATA / folder).is_dir():
            yield Finding(claim, f"not tried: ../shared/data/{folder} is not here", None)
        else:
            yield measure(SHARED_DATA).finding(claim)


# ---- URLs, MIME types, robots.txt, responses, encodings: by the functions of the tests


def _urls(data: Path) -> Tried:
    return tried(cases(data), library_passes, lambda case: repr(case["input"]))


def _canonical(data: Path) -> Tried:
    return tried(cases(data), canonical_passes, lambda case: repr(case["input"]))


def _types(data: Path) -> Tried:
    every = [case for name in MIME_FILES for case in mime_cases(data, name)]
    return tried(every, read_as_the_standard, lambda case: repr(case["input"]))


def _robots(data: Path) -> Tried:
    def why(text: str, expected: dict[str, str]) -> str:
        told = {line for line, *of in AGAINST_THE_RFC if of == [expected["url"], expected["agent"]]}
        return "where RFC 9309 says otherwise" if any(line in text for line in told) else ""

    return tried(
        conformance_cases(data),
        lambda case: answers_as_google(*case),
        lambda case: f"{case[1]['url']} for {case[1]['agent']}",
        lambda case: why(*case),
    )


def _responses(data: Path) -> Tried:
    def why(title: str) -> str:
        if title in REFUSED_HERE:
            return "of other protocols or of a lenient mode, refused here"
        return "refused there and read here, as browsers do" if title in READ_NEVERTHELESS else ""

    every = nodes_cases(data / "llhttp-tests" / "llhttp-md.tar.xz")
    return tried(every, as_node_reads, lambda case: case.title, lambda case: why(case.title))


def _encodings(data: Path) -> Tried:
    return tried(html5lib_cases(data), lambda case: as_html5lib_finds(*case), lambda case: repr(case[0][:60]))


# ---- web archives


class Archived(NamedTuple):
    """An answer in an archive that another program wrote, as warcio reads it."""

    name: str  # of the archive
    block: bytes
    status: int
    raw: bytes  # the body as archived
    body: bytes  # without its chunks
    length: int  # that it states; -1: none
    is_chunked: bool  # or says so


def archived_answers(folder: Path) -> Iterator[Archived]:
    """All that warcio reads; what is behind the first damage of an archive is not tried."""
    for path in sorted(folder.iterdir()):
        if not re.search(r"\.warc(\.gz|\.xz)?$", path.name):
            continue
        content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        try:
            for record in ArchiveIterator(io.BytesIO(content), no_record_parse=True):
                url = (record.rec_headers.get_header("WARC-Target-URI") or "").strip("<>")
                if record.rec_type == "response" and url.startswith("http"):
                    yield from _answer(path.name, record.raw_stream.read())
        except ArchiveLoadFailed:
            continue


def _answer(name: str, block: bytes) -> Iterator[Archived]:
    stream = io.BytesIO(block)
    try:
        head = StatusAndHeadersParser(["HTTP/"], verify=False).parse(stream)
        status = int(head.get_statuscode())
    except (StatusAndHeadersParserException, EOFError, ValueError):
        return  # no answer for warcio either
    raw = stream.read()
    is_chunked = (head.get_header("transfer-encoding") or "").lower() == "chunked"
    length = head.get_header("content-length") or ""
    body = _without_chunks(raw) if is_chunked else raw
    yield Archived(name, block, status, raw, body, int(length) if length.isdigit() else -1, is_chunked)


def _without_chunks(raw: bytes) -> bytes:
    reader, parts = ChunkedDataReader(io.BytesIO(raw)), list[bytes]()
    while part := reader.read(1 << 16):
        parts.append(part)
    return b"".join(parts)


def _ours(answer: Archived) -> Response | None:
    reader = ResponseReader(Limits(body_bytes=1 << 29))
    reader.feed(answer.block)
    return reader.next() or reader.eof() or reader.cut("time")


def reads_alike(answer: Archived) -> bool:
    ours = _ours(answer)
    return ours is not None and (ours.status, ours.body) == (answer.status, answer.body)


def _why_not_alike(answer: Archived) -> str:
    ours = _ours(answer)
    if answer.is_chunked and not re.match(rb"[0-9A-Fa-f]+[ \t]*(;[^\n]*)?\r?\n", answer.raw):
        return "that say chunked and whose chunks an archiver has taken off"
    if ours is not None and 0 <= answer.length < len(answer.raw) and ours.body == answer.raw[: answer.length]:
        return "longer than the length they state, read to that length"
    if ours is None and not _HEAD.match(answer.block):
        return "without a whole head of HTTP"
    return ""


def _archives(data: Path) -> Tried:
    return tried(archived_answers(data / "warc-samples"), reads_alike, lambda answer: answer.name, _why_not_alike)


def _archived_again(data: Path) -> Tried:
    """By our writer, and read back by warcio. Of equal bodies the second is a revisit; so each stands once."""
    answers = {answer.block: answer for answer in archived_answers(data / "warc-samples") if reads_alike(answer)}
    unique = {answer.body: answer for answer in answers.values()}.values()
    with tempfile.TemporaryDirectory() as scratch:
        heads = [answer.block[: len(answer.block) - len(answer.raw)] for answer in unique]
        pages = [
            fetched(at, answer.body, wire=answer.raw, head=head, status=answer.status)
            for at, (answer, head) in enumerate(zip(unique, heads, strict=True))
        ]
        records = archived(archive_of(scratch, pages))
    read = [
        (block, record.rec_headers.get_header("WARC-Payload-Digest"))
        for *_, record, block in records
        if record.rec_type == "response"
    ]
    return tried(
        zip(unique, read, strict=True),
        lambda pair: pair[1] == (pair[0].block, f"sha1:{b32encode(sha1(pair[0].body).digest()).decode()}"),
        lambda pair: pair[0].name,
    )


# ---- sitemaps


def _listed_by(path: Path) -> set[str]:
    """The pages, or the sitemaps, that an example names: by an XML reader that knows nothing of ours."""
    if path.suffix == ".txt":
        text = path.read_text()
        found = (
            re.findall(r"^site-?map: *(\S+)", text, re.M | re.I)
            if path.name == "robots.txt"
            else re.findall(r"^http\S+", text, re.M)
        )
        return set(found)
    root = ElementTree.parse(path).getroot()
    nodes = [node for item in root.iter() if _name(item) in ("url", "sitemap", "entry", "item") for node in item]
    return {node.get("href") or (node.text or "").strip() for node in nodes if _is_location(node)}


def _name(node: ElementTree.Element) -> str:
    return node.tag.partition("}")[2] or node.tag


def _is_location(node: ElementTree.Element) -> bool:
    return (
        _name(node) in ("loc", "link") and node.get("rel", "alternate") == "alternate" and "hreflang" not in node.attrib
    )


def _listed_by_us(path: Path) -> set[str]:
    body, url = path.read_bytes(), f"https://example.org/{path.name}"
    if path.name == "robots.txt":
        return set(of_robots(body, url).sitemaps)
    if path.stem.startswith(("atom", "rss")):
        return {entry.url for entry in read_feed(body, url, _FAR).entries}
    found = read_sitemap(body, url, False, _FAR)
    return {entry.url for entry in [*found.entries, *found.sitemaps]}


def _sitemaps(data: Path) -> Tried:
    examples = [path for path in sorted((data / "sitemap-examples").iterdir()) if path.name != "ORIGIN.txt"]
    return tried(
        examples,
        lambda path: bool(_listed_by(path)) and _listed_by_us(path) == _listed_by(path),
        lambda path: path.name,
    )


SUITES: tuple[tuple[str, str, Callable[[Path], Tried]], ...] = (
    ("wpt", "URLs are parsed as the WHATWG's URL standard says (Web Platform Tests).", _urls),
    ("wpt", "Canonical URLs are those of the standard, without fragment and credentials.", _canonical),
    ("wpt", "Content types are read as the WHATWG's MIME sniffing standard says (Web Platform Tests).", _types),
    ("robots-google-ctc", "robots.txt is obeyed as by Google's parser.", _robots),
    ("llhttp-tests", "HTTP responses are read as by llhttp, in its strict mode.", _responses),
    ("html5lib-tests", "The encoding of a page is found as html5lib's cases say.", _encodings),
    ("warc-samples", "Answers in archives of other programs are read as warcio reads them: status and body.", _archives),
    ("warc-samples", "Archived by Trapline, the same answers come back from warcio byte by byte, with right digests.", _archived_again),
    ("sitemap-examples", "Sitemaps, feeds and robots.txt name the pages and sitemaps that a plain XML reader finds.", _sitemaps),
)  # fmt: skip
SECTION = Section("Conformance", _METHOD, run)
