"""Experiment 6 of `cho`: two regions with a partition in each, and one link between them.

Measured: the URLs sent over the link, with sites assigned by hash or by the suffixes of their names; and how much pages can be
compressed (zlib) on their way to a centre. The pages are made by `testweb`: their text has few different words, so real pages
compress less. Assumed: the centre is in one of the regions, so that the pages of the other region go over the link; and all
pages that the centre has already have changed in one sentence.
"""

import zlib
from array import array
from collections.abc import Mapping
from functools import cache

import numpy as np

from trapline.graph import Graph, WebModel, build
from trapline.graph.strings import decoded
from trapline.lab.cho.crawled_web import Setting
from trapline.lab.cho.measures import ChoStudy, Measured, item, sent, sent_at_once, times
from trapline.lab.cho.modes import page_bytes, url_bytes
from trapline.lab.paper import PaperClaim, PaperItem, Values, at_least, differences
from trapline.testweb.answers.render import render
from trapline.testweb.web.changes import PageChanges
from trapline.testweb.web.served_web import ServedWeb, build_web

REGIONS = 2
_WIDEST = 0.6  # largest share of all pages for one suffix: a larger one is divided by the next label
_MOST_LABELS = 4
_PAGES, _SITES = 400, 20  # size of the web whose pages are compressed
WAYS = ("as they are", "compressed", "difference", "summary")
_NOUNS = {"compressed": "compressed pages", "difference": "differences", "summary": "summaries"}


def experiment(study: ChoStudy) -> PaperItem:
    """Run the experiment."""
    by_name = hierarchical(study.web.graph)
    settings = {"site-hash": Setting("exchange", REGIONS)}
    if by_name:
        settings["hierarchical"] = Setting("exchange", REGIONS, kind="suffix", suffixes=by_name)
    names = dict(enumerate(settings))
    curves = {
        "at once": {float(at): study.values(settings[name], sent_at_once) for at, name in names.items()},
        "a batch per step": {float(at): study.values(settings[name], sent) for at, name in names.items()},
    }
    urls = Measured(
        "6a",
        "Over the link between two regions",
        "sites assigned by",
        "URLs per page",
        curves,
        _as_x(names),
        apart=True,
    )
    shipped = _shipped(study, settings["site-hash"])
    ways = dict(enumerate(["URLs alone", *(f"pages {way}" for way in WAYS)]))
    bytes_ = {"two regions": {float(at): shipped[name] for at, name in ways.items()}}
    parts = Measured(
        "6b", "Bytes over the link", "what goes over it", "bytes per page of the crawl", bytes_, _as_x(ways), apart=True
    )
    verdicts = [*_of_regions(curves["at once"], by_name), *_of_shipping(shipped)]
    return item(6, "Two regions", study, [urls, parts], verdicts, _notes(study, by_name))


def _as_x(names: Mapping[int, str]) -> dict[float, str]:
    return {float(at): name for at, name in names.items()}


def _of_regions(at_once: Mapping[float, Values], by_name: object) -> list[PaperClaim]:
    text = "Fewer URLs cross if sites are assigned by the suffixes of their names than if by hash: URLs per page"
    return [at_least(text, "fewer", differences(at_once[0.0], at_once[1.0]))] if by_name else []


def _of_shipping(shipped: Mapping[str, Values]) -> list[PaperClaim]:
    whole = shipped["pages as they are"]
    saved = {way: differences(whole, shipped[f"pages {way}"]) for way in WAYS[1:]}
    further = differences(shipped["pages compressed"], shipped["pages difference"])
    return [
        at_least(
            "URLs take fewer bytes than pages: bytes saved per page", "fewer", differences(whole, shipped["URLs alone"])
        ),
        *(
            at_least(f"Sending pages as {_NOUNS[way]} saves bytes per page", "fewer", values)
            for way, values in saved.items()
        ),
        at_least("Differences take fewer bytes than compressed pages", "fewer", further),
    ]


def _shipped(study: ChoStudy, setting: Setting) -> dict[str, Values]:
    """Return the bytes over the link per page of the whole crawl. Half of the pages are on the far side."""
    urls = times(study.values(setting, sent_at_once), url_bytes(study))
    far = page_bytes(study) / REGIONS
    shares = [ratios(draw) for draw in range(study.draws)]
    return {"URLs alone": urls, **{f"pages {way}": [far * share[way] for share in shares] for way in WAYS}}


# ---- sites by the suffixes of their names


def hierarchical(graph: Graph) -> tuple[tuple[str, int], ...]:
    """Return suffixes of host names with their regions, so that each region has about half of the pages.

    Return nothing if the sites have no names, or if their suffixes do not differ.
    """
    if graph.site_names is None:
        return ()
    hosts = [name.split("://")[-1].split("/")[0].rsplit(":", 1)[0] for name in decoded(graph.site_names)]
    pages = np.bincount(graph.site, minlength=graph.sites)
    for labels in range(1, _MOST_LABELS + 1):
        sizes: dict[str, int] = {}
        for host, size in zip(hosts, pages.tolist(), strict=True):
            suffix = ".".join(host.split(".")[-labels:])
            sizes[suffix] = sizes.get(suffix, 0) + size
        if max(sizes.values()) <= _WIDEST * graph.pages:
            break
    return tuple(_assigned(sizes).items()) if len(sizes) >= REGIONS else ()


def _assigned(sizes: Mapping[str, int]) -> dict[str, int]:
    """Assign the suffixes to the regions, largest first, each to the region with the fewest pages."""
    pages = [0] * REGIONS
    regions = {}
    for suffix in sorted(sizes, key=lambda name: (-sizes[name], name)):
        regions[suffix] = pages.index(min(pages))
        pages[regions[suffix]] += sizes[suffix]
    return regions


# ---- pages on their way to a centre


@cache
def ratios(draw: int) -> dict[str, float]:
    """Return the bytes sent for all pages of another web in each draw, as a share of their size; by zlib, level 6."""
    web = _changed_once(draw + 1)
    pairs = [(render(web, page, 0.5), render(web, page, 1.5)) for page in range(web.pages)]
    whole = sum(len(after) for _, after in pairs)
    sizes = (whole, sum(len(zlib.compress(after)) for _, after in pairs),
             sum(difference(before, after) for before, after in pairs), sum(summary(after) for _, after in pairs))  # fmt: skip
    return {way: size / whole for way, size in zip(WAYS, sizes, strict=True)}


def _changed_once(seed: int) -> ServedWeb:
    """Return a web in which every page changes once, after 1 second."""
    graph = build(WebModel(_PAGES, _SITES, seed))
    at_s = np.ones(graph.pages)
    offsets = array("q", np.arange(graph.pages + 1, dtype=np.int64).tobytes())
    born_s = array("d", bytes(8 * graph.pages))
    return build_web(
        graph, seed=seed, changes=PageChanges(offsets, array("d", at_s.tobytes()), 10.0, born_s, noise=True)
    )


def difference(before: bytes, after: bytes) -> int:
    """Return the compressed size of the page if the receiver has the version before; DEFLATE uses the last 32 kB of that version.

    >>> difference(b"a bee walks its route " * 9, b"a bee walks its route " * 9) < 20
    True
    """
    coder = zlib.compressobj(zdict=before)
    return len(coder.compress(after) + coder.flush())


def summary(page: bytes) -> int:
    """Return the compressed size of the distinct words of the page, which is what an index without positions needs."""
    words = sorted(set(page.lower().split()))
    return len(zlib.compress(b" ".join(words)))


def _notes(study: ChoStudy, by_name: tuple[tuple[str, int], ...]) -> list[str]:
    graph = study.web.graph
    shares = [ratios(draw) for draw in range(study.draws)]
    said = ", ".join(f"{way} {np.mean([share[way] for share in shares]):.1%}" for way in WAYS)
    notes = [f"Bytes sent for {_PAGES} pages of testweb in each draw, as a share of their size: {said}."]
    if not by_name:
        return [*notes, "Hierarchical assignment was not run: the sites of this graph have no names, or all the same."]
    region = dict(by_name)
    shown = ", ".join(f"{suffix} {number}" for suffix, number in list(region.items())[:6])
    return [
        *notes,
        f"{len(region):,} suffixes for {graph.sites:,} sites, with their regions: {shown}{', ...' if len(region) > 6 else ''}.",
    ]
