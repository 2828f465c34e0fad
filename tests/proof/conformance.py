"""Test suites of other projects, case by case: how many cases Trapline answers in the same way, and why it answers the others
differently."""

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

from tests.crawler.store_world import archived, fetched
from tests.crawler.test_warc import archive_of
from tests.effort import DATA
from tests.fetch.test_encoding import as_html5lib_finds, html5lib_cases
from tests.fetch.test_headers import MIME_FILES, mime_cases, read_as_the_standard
from tests.fetch.test_http1 import READ_NEVERTHELESS, REFUSED_HERE, as_node_reads, nodes_cases
from tests.fetch.test_robots import AGAINST_THE_RFC, answers_as_google, conformance_cases
from tests.fetch.test_urls import canonical_passes, cases, library_passes
from tests.proof.section import Finding, Section
from trapline.fetch.http.http1 import ResponseReader
from trapline.fetch.http.response import Response
from trapline.fetch.limits import Limits
from trapline.signals.published.feed import read_feed
from trapline.signals.published.list_discovery import of_robots
from trapline.signals.published.sitemap import read_sitemap

_METHOD = """
Other projects publish these test suites: the URL and MIME type tests of the Web Platform Tests, Google's robots.txt cases, the
responses of Node's parser llhttp, the encodings of html5lib, web archives of eleven projects, and the sitemap examples of
ultimate-sitemap-parser. The folder of each suite names its commit. A case passes if Trapline gives the answer that the suite expects.
The table lists the cases that Trapline answers differently on purpose, with the reason. Any other difference makes the claim fail.
"""
_FAR = 2e9  # a time after every date in the examples
_NAMED = 8  # failures that a finding names
_HEAD = re.compile(rb"HTTP/[^\r\n]*\r?\n([^\r\n]+\r?\n)*\r?\n")
Case = TypeVar("Case")


class SuiteResult(NamedTuple):
    """The results of the cases of a suite."""

    cases: int
    passed: int
    unexplained: list[str]
    explained: dict[str, list[str]]  # by reason

    def finding(self, claim: str) -> Finding:
        said = [f"{self.passed:,} of {self.cases:,} cases"]
        for reason, names in self.explained.items():
            said.append(f"{len(names)} {reason}: {_listed(names)}")
        if self.unexplained:
            said.append(f"{len(self.unexplained)} without an explanation: {_listed(self.unexplained)}")
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
) -> SuiteResult:
    """Try every case. `why` gives the reason why a case may be answered differently, or "" if there is none."""
    found = SuiteResult(0, 0, [], {})
    for case in every:
        passed = passes(case)
        found = found._replace(cases=found.cases + 1, passed=found.passed + passed)
        if not passed:
            reason = why(case)
            (found.explained.setdefault(reason, []) if reason else found.unexplained).append(name(case))
    return found


def run(full: bool) -> Iterator[Finding]:
    """Both forms run everything, because it takes a few seconds."""
    for folder, claim, measure in SUITES:
        if DATA is None or not (DATA / folder).is_dir():
            yield Finding(claim, f"TRAPLINE_DATA names no folder that has {folder}", None)
        else:
            yield measure(DATA).finding(claim)


# ---- URLs, MIME types, robots.txt, responses, encodings: with the functions of the unit tests


def _urls(data: Path) -> SuiteResult:
    return tried(cases(data), library_passes, lambda case: repr(case["input"]))


def _canonical(data: Path) -> SuiteResult:
    return tried(cases(data), canonical_passes, lambda case: repr(case["input"]))


def _types(data: Path) -> SuiteResult:
    every = [case for name in MIME_FILES for case in mime_cases(data, name)]
    return tried(every, read_as_the_standard, lambda case: repr(case["input"]))


def _robots(data: Path) -> SuiteResult:
    def why(text: str, expected: dict[str, str]) -> str:
        rules = {line for line, *of in AGAINST_THE_RFC if of == [expected["url"], expected["agent"]]}
        return "where RFC 9309 says otherwise" if any(line in text for line in rules) else ""

    return tried(
        conformance_cases(data),
        lambda case: answers_as_google(*case),
        lambda case: f"{case[1]['url']} for {case[1]['agent']}",
        lambda case: why(*case),
    )


def _responses(data: Path) -> SuiteResult:
    def why(title: str) -> str:
        if title in REFUSED_HERE:
            return "in other protocols or a lenient mode, which Trapline refuses"
        return "refused by llhttp and read by Trapline, as browsers do" if title in READ_NEVERTHELESS else ""

    every = nodes_cases(data / "llhttp-tests" / "llhttp-md.tar.xz")
    return tried(every, as_node_reads, lambda case: case.title, lambda case: why(case.title))


def _encodings(data: Path) -> SuiteResult:
    return tried(html5lib_cases(data), lambda case: as_html5lib_finds(*case), lambda case: repr(case[0][:60]))


# ---- web archives


class Archived(NamedTuple):
    """An answer in an archive of another program, as warcio reads it."""

    name: str  # file name of the archive
    block: bytes
    status: int
    raw: bytes  # the body as archived
    body: bytes  # without its chunks
    length: int  # the stated length; -1: none
    is_chunked: bool  # whether the head says so


def archived_answers(folder: Path) -> Iterator[Archived]:
    """Yield all answers that warcio reads. What is behind the first damage of an archive is not tried."""
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
        return  # warcio does not read it as an answer either
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
        return "declared as chunked, but the archiving program removed the chunks"
    if ours is not None and 0 <= answer.length < len(answer.raw) and ours.body == answer.raw[: answer.length]:
        return "longer than their stated length, and read up to that length"
    if ours is None and not _HEAD.match(answer.block):
        return "without a complete HTTP header"
    return ""


def _archives(data: Path) -> SuiteResult:
    return tried(archived_answers(data / "warc-samples"), reads_alike, lambda answer: answer.name, _why_not_alike)


def _written_by_us(data: Path) -> SuiteResult:
    """Write the answers with our writer and read them with warcio. Each body is written once, because the second of two equal ones
    would be a revisit."""
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
    """Return the pages or sitemaps that an example names, as an independent XML reader finds them."""
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


def _sitemaps(data: Path) -> SuiteResult:
    examples = [path for path in sorted((data / "sitemap-examples").iterdir()) if path.name != "ORIGIN.txt"]
    return tried(
        examples,
        lambda path: bool(_listed_by(path)) and _listed_by_us(path) == _listed_by(path),
        lambda path: path.name,
    )


SUITES: tuple[tuple[str, str, Callable[[Path], SuiteResult]], ...] = (
    ("wpt", "URLs are parsed by the WHATWG's URL standard (Web Platform Tests).", _urls),
    ("wpt", "Canonical URLs are the URLs of the standard without fragment and credentials.", _canonical),
    ("wpt", "Content types are parsed by the WHATWG's MIME sniffing standard (Web Platform Tests).", _types),
    ("robots-google-ctc", "robots.txt allows the same URLs as in Google's parser.", _robots),
    ("llhttp-tests", "HTTP responses are parsed as by llhttp in its strict mode.", _responses),
    ("html5lib-tests", "The encoding of a page is the one that html5lib's cases expect.", _encodings),
    ("warc-samples", "Responses in the archives of other programs have the same status and body as in warcio.", _archives),
    ("warc-samples", "warcio reads the same responses, archived by Trapline, byte for byte and with correct digests.", _written_by_us),
    ("sitemap-examples", "Trapline finds the same pages and sitemaps in sitemaps, feeds and robots.txt as a plain XML reader.", _sitemaps),
)  # fmt: skip
SECTION = Section("Conformance", _METHOD, run)
