"""Character encodings are found as browsers find them, by the cases of html5lib and WPT. Any bytes have an encoding."""

import json
import tarfile
from pathlib import Path

import pytest
import webencodings
from hypothesis import given
from hypothesis import strategies as st

from trapline.fetch.html.encoding import decode, encoding_of, in_encoding, named, prescan

NAMES = sorted(set(webencodings.LABELS.values()) - {"replacement"})


def html5lib_cases(recorded_data: Path) -> list[tuple[bytes, str]]:
    found = []
    with tarfile.open(recorded_data / "html5lib-tests" / "html5lib-tests.tar.xz") as archive:
        for member in archive:
            file = (
                archive.extractfile(member)
                if "/encoding/" in f"/{member.name}" and member.name.endswith(".dat")
                else None
            )
            if file is None or "scripted" in member.name:  # this case needs a browser
                continue
            for case in file.read().split(b"#data\n")[1:]:
                body, _, label = case.partition(b"\n#encoding\n")
                found.append((body, label.split(b"\n")[0].decode()))
    return found


def as_html5lib_finds(body: bytes, label: str) -> bool:
    """The added byte makes the body neither ASCII, which is valid in every encoding, nor UTF-8."""
    return encoding_of(body + b"\xff", None) == named(label)


def test_encodings_of_the_html5lib_cases(recorded_data: Path) -> None:
    found = html5lib_cases(recorded_data)
    assert len(found) == 82
    assert [body[:200] for body, label in found if not as_html5lib_finds(body, label)] == []


def test_queries_as_browsers_encode_them(recorded_data: Path) -> None:
    found = json.loads((recorded_data / "wpt" / "percent-encoding.json").read_text(encoding="utf-8"))
    for case in found:
        if isinstance(case, dict):
            for label, expected in case["output"].items():
                name = named(label)
                assert name is not None
                if name.startswith("utf-") or case["input"].isascii():
                    continue  # the URL parser encodes it
                if name == "iso-2022-jp" or case["input"] == "\ue5e5":
                    continue  # Python's codecs differ from the standard here, in escapes and in a private-use character
                assert in_encoding("?" + case["input"], name) == "?" + expected, case


@pytest.mark.parametrize(
    ("body", "charset", "expected"),
    [
        (b"\xef\xbb\xbf<meta charset=koi8-r>", "koi8-u", "utf-8"),  # the byte order mark comes before everything else
        (b"\xff\xfe<\0", None, "utf-16le"),
        (b"\xff\xfe<\0", "utf-8", "utf-16le"),
        (b"\xfe\xff\0<", "UTF-8", "utf-16be"),
        (b"<meta charset=koi8-r>\xc1\xff", "utf-8", "utf-8"),
        (b"<meta charset=koi8-r>\xc1", "koi8-u", "koi8-u"),  # the header comes before the page
        (b"<meta charset=koi8-r>\xc1", "no-such-label", "koi8-r"),
        (b"<\0a\0>\0", "utf-16", "utf-16le"),
        (b"<meta charset=utf-16>\xc1", None, "utf-8"),
        (b"<?xml version='1.0' encoding='koi8-r'?>\xc1", None, "koi8-r"),
        (b"<p>\x1b$B", "iso-2022-jp", "iso-2022-jp"),
        (b"caf\xc3\xa9", None, "utf-8"),
        (b"caf\xc3\xa9 caf\xc3", None, "utf-8"),  # cut off within a character
        (b"\xe9t\xe9", None, "windows-1252"),
        (b"plain", "koi8-r", "utf-8"),
        (b"\xe9t\xe9", "hz-gb-2312", "windows-1252"),
    ],
)
def test_precedence_of_mark_header_and_page(body: bytes, charset: str | None, expected: str) -> None:
    assert encoding_of(body, charset) == expected


@given(st.binary(max_size=200), st.one_of(st.none(), st.text(max_size=20), st.sampled_from(NAMES)))
def test_any_bytes_are_decoded_to_text(body: bytes, charset: str | None) -> None:
    encoding = encoding_of(body, charset)
    assert isinstance(decode(body, encoding), str)
    prescan(body)


@given(st.text(max_size=30), st.sampled_from(NAMES))
def test_only_the_query_of_a_link_depends_on_the_encoding(link: str, encoding: str) -> None:
    written = in_encoding(link, encoding)
    assert written.partition("#")[2] == link.partition("#")[2]
    assert written.partition("#")[0].partition("?")[0] == link.partition("#")[0].partition("?")[0]
