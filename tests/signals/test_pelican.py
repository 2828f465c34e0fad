"""The sitemap and feeds of a real site generator, Pelican, compared with the posts that it was given."""

import subprocess
import sys
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from trapline.signals.published.feed import read_feed
from trapline.signals.published.list_discovery import FEED, SITEMAP, kind_of
from trapline.signals.published.sitemap import read_sitemap

SITE = "https://example.org/"
ZONE = ZoneInfo("Europe/Berlin")  # two of the posts are from summer, two from winter
WRITTEN = {f"post-{month}": datetime(2024, month, 3, 10, month, tzinfo=ZONE) for month in (1, 4, 7, 11)}
CHANGED = {slug: at.replace(day=20, hour=23, minute=30) for slug, at in WRITTEN.items()}

SETTINGS = f"""
SITEURL, SITENAME, TIMEZONE, DEFAULT_LANG = {SITE[:-1]!r}, 'Töst & co', 'Europe/Berlin', 'en'
FEED_ALL_ATOM, FEED_ALL_RSS = 'feeds/all.atom.xml', 'feeds/all.rss.xml'
PLUGINS = ['pelican.plugins.sitemap']
"""


def post(slug: str) -> str:
    title = f"{slug} & <co> ]]>"
    dates = f":date: {WRITTEN[slug]:%Y-%m-%d %H:%M}\n:modified: {CHANGED[slug]:%Y-%m-%d %H:%M}"
    return f"{title}\n{'=' * len(title)}\n\n:slug: {slug}\n{dates}\n\n`A link <https://elsewhere.example/>`_ & text.\n"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for needed in ("pelican", "pelican.plugins.sitemap"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: uv sync --group dev")
    folder = tmp_path_factory.mktemp("pelican")
    (folder / "content").mkdir()
    (folder / "settings.py").write_text(SETTINGS)
    for slug in WRITTEN:
        (folder / "content" / f"{slug}.rst").write_text(post(slug))
    command = [sys.executable, "-m", "pelican", "content", "-s", "settings.py", "-o", "output"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder / "output"


def test_pelicans_sitemap_has_every_page_and_every_date(output: Path) -> None:
    body = (output / "sitemap.xml").read_bytes()
    found = read_sitemap(body, SITE + "sitemap.xml", False, datetime.now(ZONE).timestamp())
    pages = {SITE + str(path.relative_to(output)).removesuffix("index.html") for path in output.rglob("*.html")}
    assert {entry.url for entry in found.entries} == pages and not found.problems
    dates = {entry.url: entry.lastmod for entry in found.entries}
    assert all(dates[f"{SITE}{slug}.html"] == at.timestamp() for slug, at in CHANGED.items())
    assert kind_of("text/xml", body, SITE) == SITEMAP


@pytest.mark.parametrize(
    ("name", "kind", "dates"), [("all.atom.xml", "atom", CHANGED), ("all.rss.xml", "rss", WRITTEN)]
)
def test_pelicans_feeds_have_every_post_and_every_date(
    output: Path, name: str, kind: str, dates: dict[str, datetime]
) -> None:
    """Its RSS has no date of change."""
    body = (output / "feeds" / name).read_bytes()
    feed = read_feed(body, SITE + "feeds/" + name, datetime.now(ZONE).timestamp())
    assert {entry.url: entry.updated for entry in feed.entries} == {
        f"{SITE}{slug}.html": at.timestamp() for slug, at in dates.items()
    }
    assert (feed.kind, feed.self_url, feed.rejected_links, dict(feed.problems)) == (
        kind,
        SITE + "feeds/" + name,
        [],
        {},
    )
    assert kind_of("text/xml", body, SITE) == FEED
