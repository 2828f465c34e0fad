"""Generated webs: sites of power-law size, pages of power-law in-degree, deep tails, dangling and dynamic pages.

The generator makes graphs for the simulator, the tests and the benchmarks. It knows nothing about strategies, and no
parameter is chosen to favour one.

The values come from four recorded crawls with URLs: a faculty of 53,779 pages on 92 sites, two crawls of a university
network (9,998 pages on 273 sites; 8,337 on 479), and another faculty (9,914 on 21). `trapline graph info` measured them
and prints the same measures for any graph. docs/generated-webs.md compares them with generated webs of the same size.

| parameter | recorded | set | why this value |
|---|---|---|---|
| links_per_page | 10.8, 10.0, 14.9, 3.7 | 14.3 | 50 M links on 3.5 M pages, the size of the thesis' collections |
| inside | .95, .90, .81, .96 | .90 | their median is .92 |
| home_links | .32, .24, .09, .03 | .10 | links to popular pages add to it: .23, .34, .52, .18 are measured |
| dangling | .19, .27, .63, .29 | .30 | in the third most of these are pages that the crawl did not reach |
| dynamic | .19, .00, .00, .04 | .10 | between the two crawls that have any |
| deep | .18, .09, .00, .003 beyond 8 clicks | .02 | the depth of the tree adds to it |
| size_exponent | 1.5, 1.6, 1.8, 1.3 | 1.8 | that of the crawl with most sites (Hill's estimate) |
| max_site_pages | .59, .20, .17, .40 of the pages | .007 | 25,000 of 3.5 M pages (Castillo et al. 2004); more where sites are few |
| single_sites | .08, .34, .42, .38 | .30 | their mean |
| degree_exponent | 2.7, 2.6, 2.7, 2.3 | 1.85 | 1.9 in a fifth recording (325,557 pages, no URLs), the only one large enough |
| pages with outside links | .27, .26, .99, .10 | .35 | of pages with links |
| outside links to home pages | .70, .57, .34, .14 | .45 | their mean; popular pages include home pages |

Sites differ (`site_contrast`). Without that, two pages of a site were hardly more alike in PageRank than any two pages.
Measured on the sites of 20 pages or more, as the quartiles over the sites of a crawl:

| per page of a site | recorded, lower and upper quartile | set |
|---|---|---|
| links | 5.3 18.6; 2.9 15.3; 1.8 18.7; 2.2 4.4 | lognormal, spread 1.0 (these quartiles: .9, 1.2, 1.7, .5) |
| links from other sites | .08 .47; .08 .77; .21 2.2; 0 .25 | lognormal, spread 1.5 (1.3, 1.7, 1.7) |
| links to other sites | .12 1.3; .05 1.3; .50 3.6; 0 .48 | lognormal, spread 1.5 (1.8, 2.4, 1.5) |
| share of dangling pages | .01 .13; .04 .53; .28 .88; .25 .40 | u^((1 - d)/d), u uniform, d the mean: .04 .51 for d = .3 |

The spread is the standard deviation of the logarithm: for quartiles a and b, ln(b / a) / 1.35. The means over all pages stay
as the other parameters say.

Out-degrees follow a power law of exponent 2.72 (Broder et al., "Graph structure in the Web", 2000). On the recorded
sites of 21 to 500 pages nearly all pages share the same 10 to 40 links, and every other page of the site has an in-degree
of one to three. So a generated page spends its links within the site as follows: up to four fifths on the site's menu,
which is the first pages of its tree; up to a fifth on its first siblings; the rest on popular pages (nine in ten) and
on near ones.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError, InvariantError
from trapline.graph.exact import drawn, exp, key_of, normal, power
from trapline.graph.generate_kernels import (
    ALIKE,
    CALENDAR,
    DANGLING,
    DENSE_LINKS,
    DYNAMIC,
    FARM,
    ORDINARY,
    LinkRows,
    WebPlan,
    link_pages,
    shape_sites,
)
from trapline.graph.graph import MOST_PAGES, Graph, grouped
from trapline.graph.page_sizes import page_sizes
from trapline.graph.strings import GeneratedSiteNames, GeneratedUrls

Note = Callable[[str], None]
Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

_STEPS = 4096
_OUT_DEGREE_EXPONENT = 2.72
_MENU, _SECTION, _POPULAR = 0.8, 0.2, 0.9
_LINKS_OUT, _OUTSIDE_FRESH, _OUTSIDE_HOME = 0.35, 0.15, 0.45
_RICHNESS_SPREAD, _OUTWARD_SPREAD, _FAME_SPREAD = 1.0, 1.5, 1.5
_DOUBLINGS = 31


@dataclass(frozen=True)
class WebModel:
    """The parameters of a generated web. Shares are fractions of 1."""

    pages: int
    sites: int
    seed: int = 1
    links_per_page: float = 14.3
    """mean, dangling pages included"""
    inside: float = 0.9
    """share of links within a site"""
    home_links: float = 0.1
    """share of pages with links that link to their home page"""
    dangling: float = 0.3
    """share of pages without links"""
    dynamic: float = 0.1
    """share of pages in families with a query string"""
    deep: float = 0.02
    """share of pages in static chains"""
    size_exponent: float = 1.8
    """exponent of the power law of pages per site"""
    degree_exponent: float = 1.85
    """exponent of the power law of links to a page, not counting links from menus"""
    single_sites: float = 0.3
    """share of sites with one page, in addition to those that the power law gives"""
    sites_per_ip: float = 1.0
    """mean number of sites that share an address"""
    max_site_pages: int | None = None
    """most pages of a site; None: `default_max_site_pages`"""
    site_contrast: float = 1.0
    """how much sites differ in links per page, dangling pages, and links from and to other sites: 0 not at all, 1 as
    recorded"""
    link_farms: float = 0.0
    """share of pages on sites whose pages link to each other at random"""
    calendars: float = 0.0
    """share of pages on sites that are one long chain of dynamic pages, each with links to its neighbours"""

    def __post_init__(self) -> None:
        check_range("pages", self.pages, 1, MOST_PAGES)
        check_range("sites", self.sites, 1, self.pages, ", the number of pages")
        check_range("links_per_page", self.links_per_page, 1, 1000)
        for name in ("inside", "home_links", "single_sites"):
            check_range(name, getattr(self, name), 0, 1)
        for name in ("dangling", "dynamic", "deep"):
            check_range(name, getattr(self, name), 0, 0.9)
        _check_sum(0.9, dynamic=self.dynamic, deep=self.deep)
        check_range("size_exponent", self.size_exponent, 1.1, 5)
        check_range("degree_exponent", self.degree_exponent, 1.5, 5)
        check_range("sites_per_ip", self.sites_per_ip, 1, self.sites, ", the number of sites")
        if self.max_site_pages is not None:
            least = -(-self.pages // self.sites)
            check_range("max_site_pages", self.max_site_pages, least, MOST_PAGES, "; fewer cannot hold all pages")
        for name in ("site_contrast", "link_farms", "calendars"):
            check_range(name, getattr(self, name), 0, 1)
        _check_sum(1.0, link_farms=self.link_farms, calendars=self.calendars)


def check_range(name: str, value: float, least: float, most: float, why: str = "") -> None:
    """Raise `ConfigError` unless the parameter is in its range. The message names the option that has the name of the parameter."""
    if not least <= value <= most:
        flag = f"--{name.replace('_', '-')}"
        raise ConfigError(f"{flag} {value:.10g} is out of range; give a number from {least:g} to {most:.10g}{why}")


def _check_sum(most: float, **shares: float) -> None:
    """Raise `ConfigError` if the two shares add up to more than `most`."""
    if sum(shares.values()) > most:
        named = " and ".join(f"--{name.replace('_', '-')} {share:g}" for name, share in shares.items())
        raise ConfigError(f"{named} add up to {sum(shares.values()):g}; give shares that add up to at most {most:g}")


def generate(
    pages: int,
    sites: int,
    seed: int = 1,
    note: Note | None = None,
    max_site_pages: int | None = None,
    **shape: float,
) -> Graph:
    """Generate a web with the parameters of `WebModel`; equal parameters give equal webs on every machine.

    `note` is called with the name of each step as it begins. The cost is linear in links, and takes at most about 6
    bytes a link and 70 bytes a page of memory.
    """
    return build(WebModel(pages, sites, seed, max_site_pages=max_site_pages, **shape), note)


def build(model: WebModel, note: Note | None = None) -> Graph:
    say = note or (lambda _: None)
    say("pages")
    plan = plan_of(model)
    say("links")
    return web_of(model, plan)


def web_of(model: WebModel, plan: WebPlan) -> Graph:
    offsets, targets = _links_of(model, plan)
    home = plan.first[:-1].astype(np.int32)
    dynamic = ((plan.flags & DYNAMIC) != 0).astype(np.uint8)
    return Graph(
        offsets=offsets,
        targets=targets,
        site=plan.site,
        home=home,
        dynamic=dynamic,
        ips=_ips(model),
        urls=GeneratedUrls(plan.site, home, dynamic),
        site_names=GeneratedSiteNames(model.sites),
        sizes=page_sizes(model.seed, plan.site),
        origin={"format": "generated", "model": asdict(model)},
    )


def plan_of(model: WebModel) -> WebPlan:
    """Return everything that is decided before links are drawn."""
    sizes = site_sizes(model)
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    site = np.repeat(np.arange(model.sites, dtype=np.int32), sizes)
    kind = _kinds(model, sizes)
    tree = sizes - (sizes * (model.dynamic + model.deep)).astype(np.int64)
    tree[kind == FARM] = sizes[kind == FARM]
    tree[kind == CALENDAR] = 1
    parent = np.empty(model.pages, dtype=np.int32)
    flags = np.zeros(model.pages, dtype=np.uint8)
    dangling = np.where(kind == ORDINARY, _dangling(model, sizes), 0.0)
    shape_sites(first, tree, kind, dangling, _family_odds(model), key_of(model.seed, "pages"), parent, flags)
    weights = _weights(model)
    children = np.flatnonzero(parent >= 0).astype(np.int32)
    child_offsets, children = grouped(parent[children], children, model.pages)
    linking = np.bincount(site[flags & DANGLING == 0], minlength=model.sites).astype(np.float64)
    richness = _factors(model, "richness", _RICHNESS_SPREAD, linking)
    fame = _factors(model, "fame", _FAME_SPREAD, sizes.astype(np.float64))
    return WebPlan(
        first=first,
        tree=tree,
        reach=reach_of(tree, weights),
        site=site,
        parent=parent,
        flags=flags,
        child_offsets=child_offsets,
        children=children,
        degrees=_out_degrees(model, int(linking.sum())),
        weights=weights,
        kind=kind,
        richness=richness,
        outward=_factors(model, "outward", _OUTWARD_SPREAD, linking * richness),
        fame=fame,
        fame_sum=np.cumsum(fame * sizes),
        odds=_odds(model),
    )


def _kinds(model: WebModel, sizes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the kind of each site: farms, then calendars, then ordinary sites, in a random order of the sites."""
    order = np.argsort(drawn(model.seed, "kinds", model.sites), kind="stable")
    middle = np.cumsum(sizes[order]) - sizes[order] / 2.0
    kind = np.full(model.sites, ORDINARY, dtype=np.uint8)
    kind[order[middle < (model.link_farms + model.calendars) * model.pages]] = CALENDAR
    kind[order[middle < model.link_farms * model.pages]] = FARM
    return kind


def _factors(model: WebModel, what: str, spread: float, weights: Floats) -> Floats:
    """Return a lognormal factor for each site; its mean over all sites, by `weights`, is 1."""
    factors = exp(normal(model.seed, what, model.sites) * (spread * model.site_contrast))
    total = float(np.cumsum(factors * weights)[-1])
    return factors * (float(np.cumsum(weights)[-1]) / total) if total > 0 else factors


def _dangling(model: WebModel, sizes: Longs) -> Floats:
    """Return the chance of a tree page to be dangling for each site; the mean over all pages is as the model says.

    u^((1 - d)/d) has mean d if u is uniform. Half of the dynamic families are lists, whose items are dangling; the trees
    have the rest of the dangling pages.
    """
    usual = (model.dangling - 0.5 * model.dynamic) / (1.0 - model.dynamic - model.deep)
    if usual <= 0.0:
        return np.zeros(model.sites)
    usual = min(usual, 1.0)
    own = power(drawn(model.seed, "dangling", model.sites), min((1.0 - usual) / usual, 64.0))
    own = usual + (own - usual) * model.site_contrast
    mean = float(np.cumsum(own * sizes)[-1]) / model.pages
    # The largest sites may be above or below the mean; move all sites so that the mean is met and shares stay in 0..1.
    if mean > usual:
        own *= usual / mean
    elif mean < usual:
        own = 1.0 - (1.0 - own) * ((1.0 - usual) / (1.0 - mean))
    return own


def _odds(model: WebModel) -> NDArray[np.float64]:
    inside = [model.inside, model.home_links, _MENU, _SECTION, _POPULAR]
    return np.array([*inside, _LINKS_OUT, _OUTSIDE_FRESH, _OUTSIDE_HOME])


def default_max_site_pages(pages: int, sites: int) -> int:
    """Return the most pages of a site if a model sets no limit: 0.7 % of the pages, at most 25,000.

    If sites are few, this limit would make their sizes equal. It is therefore at least 10 times the mean size, but not for
    that reason more than 17 % of the pages; and at least 3 times the mean size in any case.
    """
    mean = -(-pages // sites)
    few_sites = max(min(10 * mean, int(0.17 * pages)), 3 * mean)
    return max(min(int(0.007 * pages), 25_000), few_sites)


def site_sizes(model: WebModel) -> NDArray[np.int64]:
    """Return the pages per site: 1 + a Lomax variable, scaled so that the sum is the number of pages, and limited."""
    limit = model.max_site_pages or default_max_site_pages(model.pages, model.sites)
    tail = 1.0 / power(1.0 - drawn(model.seed, "sizes", model.sites), 1.0 / (model.size_exponent - 1.0)) - 1.0
    tail[drawn(model.seed, "single sites", model.sites) < model.single_sites] = 0.0
    tail += 1e-9  # all may be 0, and the sum is a divisor
    # Rounding the cumulative sum instead of the sizes loses no page.
    total = model.pages - model.sites
    ends = np.minimum(np.cumsum(scaled(tail, total, limit - 1)), total).astype(np.int64)
    ends[-1] = total
    sizes: NDArray[np.int64] = 1 + np.diff(ends, prepend=0)
    return _limited(sizes, limit)


def scaled(tail: Floats, total: int, limit: int) -> Floats:
    """Return min(f * tail, limit) with the factor f for which the sum is `total`."""
    ascending = np.sort(tail)
    below = np.cumsum(ascending)
    # Factor for each number of sites below the limit, 1, 2, ...; it is right if the largest of them stays below.
    factors = (total - np.arange(len(tail) - 1, -1, -1) * float(limit)) / below
    right = np.flatnonzero(factors * ascending <= limit)
    return np.minimum(tail * factors[right[-1]], limit) if len(right) else np.full(len(tail), float(limit))


def _limited(sizes: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Move the pages beyond the limit, a rounding error on a few sites, to other sites that have more than one page."""
    excess = int(np.maximum(sizes - limit, 0).sum())
    sizes = np.minimum(sizes, limit)
    for least in (2, 1):
        while excess:
            room = np.flatnonzero((sizes >= least) & (sizes < limit))[:excess]
            if len(room) == 0:
                break
            sizes[room] += 1
            excess -= len(room)
    return sizes


def _family_odds(model: WebModel) -> NDArray[np.float64]:
    """Return the odds of `shape_sites`: half of the dynamic families are lists, the other half chains."""
    families = model.dynamic + model.deep
    return np.array([model.dynamic / families if families else 0.0, 0.5])


def _out_degrees(model: WebModel, linking: int) -> NDArray[np.float64]:
    """Return the quantiles of the out-degree (1 + Lomax), where `linking` is the number of pages with links."""
    middle = (np.arange(_STEPS + 1) + 0.5) / (_STEPS + 1)
    tail = 1.0 / power(1.0 - middle, 1.0 / (_OUT_DEGREE_EXPONENT - 1.0)) - 1.0
    mean = (tail[0] + tail[-1]) / 2 + np.cumsum(tail[1:-1])[-1]
    wanted = max(model.links_per_page * model.pages / max(linking, 1), 1.0)
    # `wanted_links` adds a number in [0, 1) before it rounds down, which keeps the mean.
    return 1.0 + tail * ((wanted - 1.0) / (mean / _STEPS))


def _weights(model: WebModel) -> NDArray[np.float64]:
    """Return the total weight of each step of pages; each step has twice as many pages as the one before.

    A page at rank x has in-degree ~ x^-s, s = 1/(g - 1), so twice as many pages weigh 2^(1 - s) as much.
    """
    steepness = 1.0 / (model.degree_exponent - 1.0) - 1.0
    halved = float(power(np.array([0.5]), abs(steepness))[0])
    return np.cumprod(np.full(_DOUBLINGS, halved if steepness > 0 else 1.0 / halved)) / halved


def reach_of(tree: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the total weight of the first `tree` pages; the last step counts in proportion to its pages."""
    reach = np.zeros(len(tree))
    start, span = 0, ALIKE
    for weight in weights:
        reach += weight * np.clip((tree - start) / span, 0.0, 1.0)
        start, span = start + span, 2 * span
    return reach


def _links_of(model: WebModel, plan: WebPlan) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    # Reserve more than the mean; the system does not commit memory that is never touched. If even this is too little,
    # link_pages returns -1.
    dense = int((DENSE_LINKS + 1) * np.diff(plan.first)[plan.kind != ORDINARY].sum())
    room = int(1.2 * model.links_per_page * model.pages) + 2 * model.pages + dense + 64 * _STEPS
    offsets = np.empty(model.pages + 1, dtype=np.int64)
    targets = np.empty(room, dtype=np.int32)
    last_row = np.full(model.pages, -1, dtype=np.int32)
    made = link_pages(plan, key_of(model.seed, "links"), LinkRows(offsets, targets, last_row))
    if made < 0:
        raise InvariantError(f"more than {room} links drawn for {model}")
    targets.resize(made, refcheck=False)
    return offsets, targets


def _ips(model: WebModel) -> NDArray[np.int32]:
    """Return the address of each site.

    The first sites have an address each. Every other site joins one of these, the addresses with low numbers far more
    often.
    """
    addresses = max(1, round(model.sites / model.sites_per_ip))
    chance = drawn(model.seed, "ips", model.sites)
    joined = (chance * chance * addresses).astype(np.int32)
    own = np.arange(model.sites, dtype=np.int32)
    return np.where(own < addresses, own, joined)
