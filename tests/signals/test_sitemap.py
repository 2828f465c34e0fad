"""Sitemaps follow the protocol in every encoding and notation. A sitemap is valid for its own folder only."""

import gzip
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.fetch.urls import canonical
from trapline.signals.published import sitemap
from trapline.signals.published.sitemap import (
    MOST_URLS,
    NO_DATE,
    NO_URL,
    OTHER_FOLDER,
    OTHER_HOST,
    TOO_MANY,
    UNREADABLE,
    Sitemap,
    read_sitemap,
)

NOW = 2e9
URL = "https://example.org/sitemap.xml"
DAY = datetime(2024, 1, 1, tzinfo=UTC).timestamp()
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def read(body: bytes | str, url: str = URL, cited: bool = False, **more: str) -> Sitemap:
    return read_sitemap(body.encode() if isinstance(body, str) else body, url, cited, NOW, **more)


def urls(found: Sitemap) -> list[str]:
    return [entry.url for entry in found.entries]


paths = st.text(
    st.characters(codec="utf-8", exclude_characters="#?\\", exclude_categories=["Cc", "Cs", "Zs"]), max_size=20
)
pages = st.lists(
    st.tuples(
        paths.map(lambda path: canonical("https://example.org/x" + path)).filter(bool),
        st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1)).map(lambda at: at.replace(microsecond=0, tzinfo=UTC)),
        st.sampled_from(sitemap.CHANGEFREQ),
        st.integers(0, 10).map(lambda tenths: tenths / 10),
    ),
    max_size=8,
)


def written(rows: list[tuple[str, datetime, str, float]], encoding: str) -> bytes:
    """Written by an XML writer that knows nothing of the reader."""
    root = ElementTree.Element(f"{{{NAMESPACE}}}urlset")
    for loc, lastmod, changefreq, priority in rows:
        entry = ElementTree.SubElement(root, f"{{{NAMESPACE}}}url")
        fields = {"loc": loc, "lastmod": lastmod.isoformat(), "changefreq": changefreq, "priority": str(priority)}
        for name, value in fields.items():
            ElementTree.SubElement(entry, f"{{{NAMESPACE}}}{name}").text = value
    return ElementTree.tostring(root, encoding, xml_declaration=True)


@given(
    pages, st.sampled_from(["utf-8", "utf-16", "utf-32", "iso-8859-1", "us-ascii", "shift_jis", "gb18030", "koi8-r"])
)
def test_written_sitemaps_are_read_back(rows: list[tuple[str, datetime, str, float]], encoding: str) -> None:
    """Including prefixes, which this writer gives to every element."""
    found = read(written(rows, encoding))
    assert found.entries == [(loc, at.timestamp(), changefreq, priority) for loc, at, changefreq, priority in rows]
    assert not found.problems


@pytest.mark.parametrize(
    "name", ["simple-urlset.xml", "google-news.xml", "google-image.xml", "hreflang.xml", "plaintext.txt"]
)
def test_example_sitemaps_of_other_readers(recorded_data: Path, name: str) -> None:
    found = read((recorded_data / "sitemap-examples" / name).read_bytes())
    assert found.entries and not found.sitemaps
    assert all(url.startswith("https://example.org/") for url in urls(found))
    if name == "hreflang.xml":
        assert [entry[:2] for entry in found.entries] == [
            ("https://example.org/en/page", DAY),
            ("https://example.org/fr/page", DAY + 86_400),
        ]


def test_an_example_index_of_other_readers(recorded_data: Path) -> None:
    found = read((recorded_data / "sitemap-examples" / "simple-index.xml").read_bytes())
    assert found.sitemaps and not found.entries


@pytest.mark.parametrize(
    "body",
    [
        "<urlset><url><loc>https://example.org/a?b=1&amp;c=2</loc></url></urlset>",
        "<urlset><url><loc>\n https://example.org/a?b=1&#38;c=2 \n</loc></url></urlset>",
        "<urlset><url><loc><![CDATA[https://example.org/a?b=1&c=2]]></loc></url></urlset>",
        "<urlset><url><loc>https://example.org/a?b=1&c=2</loc></url></urlset>",
        "<sm:urlset xmlns:sm='x'><sm:url a='1'>\r\n<sm:loc b='2'>https://example.org/a?b=1&amp;c=2</sm:loc></sm:url></sm:urlset>",
        "<?xml version='1.0' encoding='nonsense'?><urlset><url><priority>1</priority><loc>/a?b=1&amp;c=2</urlset>",
        "Warning: mysql in /srv/x.php\n<?xml version='1.0'?><urlset ><url ><loc >https://example.org/a?b=1&amp;c=2</loc >",
        "<!-- <urlset><url><loc>/no</loc></url> --><urlset><url><loc>/a?b=1&amp;c=2</loc><image:loc>/no.png</image:loc></url>",
        "<!DOCTYPE urlset [<!ENTITY e 'x'>]><urlset><url><video><title>t</title></video><loc>/a?b=1&amp;c=2</loc></url>",
        "\ufeff<url><loc>/a?b=1&amp;c=2</loc></url>",
        "\ufeffhttps://example.org/a?b=1&c=2\r\nother text",
    ],
)
def test_a_page_is_read_in_many_notations(body: str) -> None:
    assert urls(read(body)) == ["https://example.org/a?b=1&c=2"]


def test_gzip_is_decompressed() -> None:
    packed = gzip.compress(b"<urlset><url><loc>/a</loc></url><url><loc>/b</loc></url></urlset>" + b" " * 10_000)
    assert urls(read(packed)) == ["https://example.org/a", "https://example.org/b"]
    assert urls(read(packed[:-12])) == ["https://example.org/a", "https://example.org/b"]


@pytest.mark.parametrize(
    ("loc", "reason"),
    [
        ("https://example.org/blog/a", ""),
        ("http://example.org/blog/deep/er", ""),
        ("https://EXAMPLE.org:443/blog/", ""),
        ("https://example.org/blogger", OTHER_FOLDER),
        ("https://example.org/", OTHER_FOLDER),
        ("https://example.org/blog/../x", OTHER_FOLDER),
        ("https://example.org:444/blog/a", OTHER_HOST),
        ("https://www.example.org/blog/a", OTHER_HOST),
        ("https://example.org.evil.net/blog/a", OTHER_HOST),
        ("https://example.org@evil.net/blog/a", OTHER_HOST),
        ("//evil.net/blog/", OTHER_HOST),
        ("javascript:alert(1)", NO_URL),
    ],
)
def test_a_sitemap_is_valid_for_its_folder(loc: str, reason: str) -> None:
    found = read(f"<urlset><url><loc>{loc}</loc></url></urlset>", "https://example.org/blog/sitemap.xml?page=/1")
    assert bool(found.entries) == (not reason)
    assert dict(found.problems) == ({reason: 1} if reason else {})


def test_a_sitemap_cited_in_robots_txt_is_valid_for_the_citing_host() -> None:
    body = "<urlset><url><loc>https://example.org/</loc></url><url><loc>https://b.net/x</loc></url></urlset>"
    assert urls(read(body, "https://example.org/blog/s.xml", cited=True)) == ["https://example.org/"]
    assert urls(read(body, "https://cdn.net/s.xml", cited=True, site="https://example.org/robots.txt")) == [
        "https://example.org/"
    ]
    assert urls(read(body, "https://cdn.net/s.xml", cited=False, site="https://example.org/robots.txt")) == []


def test_invalid_fields_are_left_out() -> None:
    body = "<url><loc>/a</loc><lastmod>yesterday</lastmod><changefreq>often</changefreq><priority>7</priority></url>"
    found = read(f"<urlset>{body}</urlset>")
    entry = found.entries[0]
    assert (isnan(entry.lastmod), entry.changefreq, isnan(entry.priority)) == (True, "", True)
    assert dict(found.problems) == {NO_DATE: 1}


@pytest.mark.parametrize(
    ("dates", "uniform"),
    [
        (["2024-01-01"] * 3, True),
        (["2024-01-01T00:00:00Z", "2024-01-01T00:00:30Z", "2024-01-01T00:00:59Z"], True),
        (["2024-01-01"] * 2, False),
        (["2024-01-01"] * 9 + ["2024-01-02"], False),
        (["2024-01-01"] * 3 + [""], False),
        (["", "", ""], False),
    ],
)
def test_one_date_on_every_page_is_noticed(dates: list[str], uniform: bool) -> None:
    rows = (f"<url><loc>/{at}</loc><lastmod>{date}</lastmod></url>" for at, date in enumerate(dates))
    assert read(f"<urlset>{''.join(rows)}</urlset>").uniform_dates == uniform


def test_the_number_of_pages_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_URLS == 50_000  # sitemaps.org
    monkeypatch.setattr(sitemap, "MOST_URLS", 50)
    row = b"<url><loc>/%d</loc></url>"
    whole = b"".join(row % at for at in range(50))
    assert len(read(whole).entries) == 50 and not read(whole).problems
    more = read(whole + row % 0 + row % 1)
    assert len(more.entries) == 50 and dict(more.problems) == {TOO_MANY: 1}


def test_a_sitemap_too_long_after_decompression_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sitemap.MOST_BYTES == 50 * 1024 * 1024  # sitemaps.org
    monkeypatch.setattr(sitemap, "MOST_BYTES", 10_000)
    body = b"<urlset><url><loc>/a</loc></url>".ljust(10_000)
    assert urls(read(gzip.compress(body))) == ["https://example.org/a"]
    assert read(gzip.compress(body + b" ")) == ([], [], False, {UNREADABLE: 1})
    assert urls(read(body + b"<url><loc>/b</loc></url>")) == ["https://example.org/a"]


@given(pages, st.integers(0, 2000))
def test_a_truncated_file_is_read_up_to_its_end(rows: list[tuple[str, datetime, str, float]], end: int) -> None:
    """All pages before the break, and none that is incomplete."""
    whole = written(rows, "us-ascii")
    cut = read(whole[:end])
    assert urls(cut) == [loc for loc, *_ in rows][: len(cut.entries)]
    assert len(cut.entries) - whole[:end].count(b"</ns0:loc>") in (0, 1)
    assert cut.entries[:-1] == read(whole).entries[: max(len(cut.entries) - 1, 0)]


@given(
    st.one_of(
        st.binary(),
        st.lists(
            st.sampled_from(
                [
                    b"<urlset>",
                    b"<url>",
                    b"</url>",
                    b"<sitemap ",
                    b"<loc>",
                    b"</loc>",
                    b"<lastmod>",
                    b"<!--",
                    b"-->",
                    b"<![CDATA[",
                    b"]]>",
                    b"http://a.org/",
                    b"&#x110000;",
                    b"&lol;",
                    b"2024-01-01",
                    b"\0",
                    b"\xff\xfe",
                    b"\x1f\x8b\x08",
                    b"<?xml encoding='utf-16'?>",
                    b">",
                    b"\n",
                    b"9" * 50,
                ]
            )
        ).map(b"".join),
    ),
    st.booleans(),
)
def test_any_bytes_give_only_pages_of_the_sitemaps_authority(body: bytes, cited: bool) -> None:
    found = read_sitemap(body, "http://a.org/x/s.xml", cited, NOW)
    folder = "a.org/" if cited else "a.org/x/"
    for entry in (*found.entries, *found.sitemaps):
        assert entry.url.startswith(("http://" + folder, "https://" + folder)) and canonical(entry.url) == entry.url
        assert isnan(entry.lastmod) or 0 <= entry.lastmod <= NOW + 30 * 86_400
