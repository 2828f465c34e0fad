"""Generator of the crawled web: sites of static pages, the same bytes on every machine.

A page has 8 to 10 KB and 20 links to 20 other pages, in the forms that people write: paths from the root, paths relative to
the page, and absolute URLs to other sites. The pages of a site form a tree below its home page, so that a crawl can find all
pages from the home pages alone; the other links are random. Every second page names its canonical URL.

This module knows nothing about servers or crawlers.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

LINKS = 20
BYTES = range(8_000, 10_001)
_CHILDREN = 4  # links of a page to its children in the tree; five steps then reach 300 pages
_ACROSS = 3  # links to other sites

_VOCABULARY = """the of and to a in is was for on as with by at from that it his her their which not are but had have been
this one all more when who will would there out up time year people way day man thing woman life child world school
state family student group country problem hand part place case week company system program question work government
number night point home water room mother book story fact month lot right study business issue side kind head house
service friend father power hour game line end member law car city community name president team minute idea body
information back parent face level office door health person art war party result change morning reason research girl
guy moment air teacher force education foot boy age policy music light voice river bridge forest winter summer market
village harbour letter engine garden window kitchen mountain island border signal winter paper stone copper silver
quiet early late narrow broad ancient modern ordinary careful sudden gentle distant familiar plain bright"""
_WORDS = _VOCABULARY.split()
_TOPICS = ["news", "garden", "travel", "history", "music", "science", "kitchen", "letters", "weather", "harbour"]


class Place(NamedTuple):
    """One page of a site: its path in the URL, and its file."""

    path: str
    file: str


def origin(site: int, port: int) -> str:
    """Return the origin of a site. Every site has its own address: 127.30.0.1, 127.30.0.2, ..."""
    return f"http://{address(site)}:{port}"


def address(site: int) -> str:
    return f"127.30.{site // 250}.{site % 250 + 1}"


def places(pages: int) -> list[Place]:
    """Return the pages of a site, the home page first. All sites have the same paths."""
    rng = Random(1)
    found = [Place("/", "index.html")]
    for number in range(1, pages):
        slug = "-".join([*rng.sample(_TOPICS, 2), str(number)])
        file = f"{_TOPICS[number % len(_TOPICS)]}/{slug}.html"
        found.append(Place("/" + file, file))
    return found


def write(folder: Path, sites: int, pages_per_site: int, port: int) -> None:
    """Write each site into a folder named by its address."""
    everywhere = places(pages_per_site)
    rng = Random(2)
    sentences = [_sentence(rng) for _ in range(3_000)]
    for site in range(sites):
        root = folder / address(site)
        for topic in _TOPICS:
            (root / topic).mkdir(parents=True, exist_ok=True)
        (root / "robots.txt").write_text("User-agent: *\nDisallow: /not-for-robots/\n")
        for number, place in enumerate(everywhere):
            hrefs = list(_hrefs(rng, everywhere, number, site, sites, port))
            canonical = origin(site, port) + place.path if number % 2 else ""
            (root / place.file).write_bytes(_html(rng, sentences, hrefs, canonical))


def _sentence(rng: Random) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randint(7, 20))).capitalize() + "."


def _hrefs(rng: Random, everywhere: list[Place], number: int, site: int, sites: int, port: int) -> Iterator[str]:
    """Yield the links of a page: first its children, then other pages of the site, then pages of other sites."""
    pages, here = len(everywhere), everywhere[number].path
    children = [child for child in range(_CHILDREN * number + 1, _CHILDREN * (number + 1) + 1) if child < pages]
    others = [page for page in rng.sample(range(pages), LINKS) if page != number and page not in children]
    for target in [*children, *others][: LINKS - _ACROSS]:
        yield _within(rng, here, everywhere[target].path)
    for other in rng.sample([other for other in range(sites) if other != site], _ACROSS):
        yield origin(other, port) + rng.choice(everywhere).path


def _within(rng: Random, here: str, there: str) -> str:
    """Return a link in one of the forms that people write: from the root, or relative to the page."""
    folder, _, name = there.rpartition("/")
    if rng.random() < 0.6 or not folder:
        return there
    if folder == here.rpartition("/")[0]:
        return name
    return there[1:] if here == "/" else ".." + there


def _html(rng: Random, sentences: list[str], hrefs: list[str], canonical: str) -> bytes:
    title, menu, text = rng.choice(sentences), hrefs[:5], hrefs[5:]
    head = f'<link rel="canonical" href="{canonical}">\n' if canonical else ""
    page = _TOP.format(title=title, head=head, menu="\n".join(map(_item, menu)))
    paragraphs = [_paragraph(rng, sentences, href) for href in text]
    missing = rng.choice(BYTES) - len(page) - len(_BOTTOM) - sum(map(len, paragraphs))
    return "".join([page, *paragraphs, _filler(rng, sentences, missing), _BOTTOM]).encode("ascii")


def _item(href: str) -> str:
    return f'<li class="item"><a href="{href}">{_label(href)}</a></li>'


def _label(href: str) -> str:
    return href.rstrip("/").rpartition("/")[2].removesuffix(".html").replace("-", " ")


def _paragraph(rng: Random, sentences: list[str], href: str) -> str:
    before, after, more = rng.sample(sentences, 3)
    link = f'<a class="inline" href="{href}" title="{_label(href)}">{_label(href)}</a>'
    return f'<p class="text">{before} {link} {after} {more}</p>\n'


def _filler(rng: Random, sentences: list[str], length: int) -> str:
    """Return a last paragraph of exactly this many bytes."""
    frame = '<p class="text">{}</p>\n'
    wanted = length - len(frame) + 2
    text = " ".join(rng.choices(sentences, k=wanted // 30 + 1))
    return frame.format(text[:wanted])


_TOP = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<meta name="description" content="{title}">
<meta property="og:title" content="{title}">
{head}<link rel="stylesheet" href="/style.css">
<link rel="icon" href="/icon.png">
<script defer src="/script.js"></script>
</head>
<body>
<header class="top"><div class="logo"><img src="/logo.png" alt="logo" width="120" height="40"></div>
<nav id="menu"><ul class="menu">
{menu}
</ul></nav></header>
<main><article><h1>{title}</h1>
"""

_BOTTOM = """</article></main>
<footer class="bottom"><div class="row"><span>All rights reserved.</span> <span>Made by hand.</span></div></footer>
</body>
</html>
"""
