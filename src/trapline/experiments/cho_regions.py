"""Experiment 6 of `cho`: two regions, a partition in each, and one link between them.

Measured: URLs sent over the link, with sites dealt by hash and by the ends of their names; how far pages get smaller on their way to a
centre (zlib), on pages that `testweb` makes: their text has few words, so real pages get less small. Assumed: the centre is in one of the
regions, so that the other's pages go over the link; of pages that were there before, all have changed in one sentence.
"""

import zlib
from array import array
from collections.abc import Mapping
from functools import cache

import numpy as np

from trapline.experiments.charts import Chart, Experiment, Verdict
from trapline.experiments.cho_modes import page_bytes, url_bytes
from trapline.experiments.cho_study import Study, sent, sent_at_once, times
from trapline.experiments.cho_web import Setting
from trapline.experiments.judgement import Values, above, larger
from trapline.graph import Graph, WebModel, build
from trapline.graph.strings import decoded
from trapline.testweb.changes import Changes
from trapline.testweb.render import render
from trapline.testweb.web import Web, build_web

REGIONS = 2
_WIDEST = 0.6  # of all pages: a suffix that has more is divided by the next label
_MOST_LABELS = 4
_PAGES, _SITES = 400, 20  # of the web whose pages are made smaller
WAYS = ("as they are", "compressed", "difference", "summary")


def experiment(study: Study) -> Experiment:
    by_name = hierarchical(study.web.graph)
    settings = {"site-hash": Setting("exchange", REGIONS)}
    if by_name:
        settings["hierarchical"] = Setting("exchange", REGIONS, kind="suffix", suffixes=by_name)
    names = dict(enumerate(settings))
    curves = {
        "at once": {float(at): study.values(settings[name], sent_at_once) for at, name in names.items()},
        "a batch a step": {float(at): study.values(settings[name], sent) for at, name in names.items()},
    }
    urls = Chart(
        "6a", "Over the link between two regions", "sites dealt by", "URLs per page", curves, _as_x(names), apart=True
    )
    shipped = _shipped(study, settings["site-hash"])
    ways = dict(enumerate(["URLs alone", *(f"pages {way}" for way in WAYS)]))
    bytes_ = {"two regions": {float(at): shipped[name] for at, name in ways.items()}}
    parts = Chart(
        "6b", "Bytes over the link", "what goes over it", "bytes per page of the crawl", bytes_, _as_x(ways), apart=True
    )
    verdicts = [*_of_regions(curves["at once"], by_name), *_of_shipping(shipped)]
    return Experiment(6, "Two regions", [urls, parts], verdicts, _notes(study, by_name))


def _as_x(names: Mapping[int, str]) -> dict[float, str]:
    return {float(at): name for at, name in names.items()}


def _of_regions(at_once: Mapping[float, Values], by_name: object) -> list[Verdict]:
    text = "dealt by the ends of names, fewer URLs cross than dealt by hash"
    return [Verdict(text, above(at_once[0.0], at_once[1.0]))] if by_name else []


def _of_shipping(shipped: Mapping[str, Values]) -> list[Verdict]:
    whole = shipped["pages as they are"]
    return [
        Verdict("URLs take less than the pages would", larger(whole, shipped["URLs alone"])),
        *(Verdict(f"pages {way}: less than as they are", above(whole, shipped[f"pages {way}"])) for way in WAYS[1:]),
        Verdict("the difference takes less than compressed pages", above(shipped["pages compressed"], shipped["pages difference"])),
    ]  # fmt: skip


def _shipped(study: Study, setting: Setting) -> dict[str, Values]:
    """Bytes over the link per page of the whole crawl; half of the pages are on the far side."""
    urls = times(study.values(setting, sent_at_once), url_bytes(study))
    far = [page_bytes(study) / REGIONS] * study.draws
    return {"URLs alone": urls, **{f"pages {way}": times(far, share) for way, share in ratios().items()}}


# ---- sites by the ends of their names


def hierarchical(graph: Graph) -> tuple[tuple[str, int], ...]:
    """Ends of host names, dealt to the regions so that each has about half of the pages; nothing, if names do not tell sites apart."""
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
    return tuple(_dealt(sizes).items()) if len(sizes) >= REGIONS else ()


def _dealt(sizes: Mapping[str, int]) -> dict[str, int]:
    """The largest first, each to the region that has least."""
    has = [0] * REGIONS
    regions = {}
    for suffix in sorted(sizes, key=lambda one: (-sizes[one], one)):
        regions[suffix] = has.index(min(has))
        has[regions[suffix]] += sizes[suffix]
    return regions


# ---- pages on their way to a centre


@cache
def ratios() -> dict[str, float]:
    """Bytes of all pages on their way, as a share of what they have; by zlib, level 6."""
    web = _changed_once()
    pairs = [(render(web, page, 0.5), render(web, page, 1.5)) for page in range(web.pages)]
    whole = sum(len(after) for _, after in pairs)
    sizes = (whole, sum(len(zlib.compress(after)) for _, after in pairs),
             sum(difference(before, after) for before, after in pairs), sum(summary(after) for _, after in pairs))  # fmt: skip
    return {way: size / whole for way, size in zip(WAYS, sizes, strict=True)}


def _changed_once() -> Web:
    """Every page changes at the second 1."""
    graph = build(WebModel(_PAGES, _SITES))
    at_s = np.ones(graph.pages)
    offsets = array("q", np.arange(graph.pages + 1, dtype=np.int64).tobytes())
    born_s = array("d", bytes(8 * graph.pages))
    return build_web(graph, changes=Changes(offsets, array("d", at_s.tobytes()), 10.0, born_s, noise=True))


def difference(before: bytes, after: bytes) -> int:
    """Bytes of the page, where the receiver has the one before: DEFLATE sees the last 32 kB of that.

    >>> difference(b"a bee walks its route " * 9, b"a bee walks its route " * 9) < 20
    True
    """
    coder = zlib.compressobj(zdict=before)
    return len(coder.compress(after) + coder.flush())


def summary(page: bytes) -> int:
    """Bytes of the page's distinct words, compressed: what an index without positions needs."""
    words = sorted(set(page.lower().split()))
    return len(zlib.compress(b" ".join(words)))


def _notes(study: Study, by_name: tuple[tuple[str, int], ...]) -> list[str]:
    graph = study.web.graph
    said = ", ".join(f"{way} {share:.1%}" for way, share in ratios().items())
    notes = [f"pages of testweb ({_PAGES} of them) on their way, of their bytes: {said}"]
    if not by_name:
        return [*notes, "hierarchical not run: sites of this graph have no names, or the same"]
    region = dict(by_name)
    shown = ", ".join(f"{suffix} {number}" for suffix, number in list(region.items())[:6])
    return [
        *notes,
        f"{len(region):,} ends of names for {graph.sites:,} sites (region): {shown}{', ...' if len(region) > 6 else ''}",
    ]
