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
| home_links | .32, .24, .09, .03 | .60 | more than recorded: those home pages have several URLs each; menus add to it |
| dangling | .19, .27, .63, .29 | .30 | in the third most of these are pages that the crawl did not reach |
| dynamic | .19, .00, .00, .04 | .10 | between the two crawls that have any |
| deep | .18, .09, .00, .003 beyond 8 clicks | .02 | the depth of the tree adds to it |
| size_exponent | 1.5, 1.6, 1.8, 1.3 | 1.8 | that of the crawl with most sites (Hill's estimate) |
| single_sites | .08, .34, .42, .38 | .30 | their mean |
| degree_exponent | 2.7, 2.6, 2.7, 2.3 | 1.85 | 1.9 in a fifth recording (325,557 pages, no URLs), the only one large enough |
| largest site | .59, .20, .17, .40 | .17 | that of the crawl with most sites |
| pages with outside links | .27, .26, .99, .10 | .35 | of pages with links |
| outside links to home pages | .70, .57, .34, .14 | .45 | their mean; popular pages include home pages |

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

from trapline.compiled.jit import ready
from trapline.errors import ConfigError, InvariantError
from trapline.graph.exact import drawn, key_of, power
from trapline.graph.generate_kernels import ALIKE, DANGLING, DYNAMIC, LinkRows, WebPlan, link_pages, shape_sites
from trapline.graph.graph import MOST_PAGES, Graph, grouped
from trapline.graph.page_sizes import page_sizes
from trapline.graph.strings import GeneratedSiteNames, GeneratedUrls

Note = Callable[[str], None]

_STEPS = 4096
_OUT_DEGREE_EXPONENT = 2.72
_LARGEST_SITE = 0.17
_MENU, _SECTION, _POPULAR = 0.8, 0.2, 0.9
_LINKS_OUT, _OUTSIDE_FRESH, _OUTSIDE_HOME = 0.35, 0.15, 0.45
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
    home_links: float = 0.6
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

    def __post_init__(self) -> None:
        _check(self.pages >= 1, "pages", self.pages, "at least 1")
        _check(self.pages <= MOST_PAGES, "pages", self.pages, f"at most {MOST_PAGES}")
        _check(1 <= self.sites <= self.pages, "sites", self.sites, f"in 1..{self.pages}, the number of pages")
        _check(1 <= self.links_per_page <= 1000, "links_per_page", self.links_per_page, "in 1..1000")
        for name in ("inside", "home_links", "single_sites"):
            _check(0 <= getattr(self, name) <= 1, name, getattr(self, name), "in 0..1")
        for name in ("dangling", "dynamic", "deep"):
            _check(0 <= getattr(self, name) <= 0.9, name, getattr(self, name), "in 0..0.9")
        _check(self.dynamic + self.deep <= 0.9, "dynamic + deep", self.dynamic + self.deep, "at most 0.9")
        _check(1.1 <= self.size_exponent <= 5, "size_exponent", self.size_exponent, "in 1.1..5")
        _check(1.5 <= self.degree_exponent <= 5, "degree_exponent", self.degree_exponent, "in 1.5..5")
        _check(1 <= self.sites_per_ip <= self.sites, "sites_per_ip", self.sites_per_ip, "in 1..sites")


def _check(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise ConfigError(f"{name} is {value}, must be {rule}")


def generate(pages: int, sites: int, seed: int = 1, note: Note | None = None, **shape: float) -> Graph:
    """Generate a web with the parameters of `WebModel`; equal parameters give equal webs on every machine.

    `note` is called with the name of each step as it begins. The cost is linear in links, and takes at most about 6
    bytes a link and 70 bytes a page of memory.
    """
    return build(WebModel(pages, sites, seed, **shape), note)


def build(model: WebModel, note: Note | None = None) -> Graph:
    ready()
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
    tree = sizes - (sizes * (model.dynamic + model.deep)).astype(np.int64)
    parent = np.empty(model.pages, dtype=np.int32)
    flags = np.zeros(model.pages, dtype=np.uint8)
    shape_sites(first, tree, _family_odds(model), key_of(model.seed, "pages"), parent, flags)
    weights = _weights(model)
    children = np.flatnonzero(parent >= 0).astype(np.int32)
    child_offsets, children = grouped(parent[children], children, model.pages)
    return WebPlan(
        first,
        tree,
        reach_of(tree, weights),
        np.repeat(np.arange(model.sites, dtype=np.int32), sizes),
        parent,
        flags,
        child_offsets,
        children,
        _out_degrees(model, _linking(flags)),
        weights,
        _odds(model),
    )


def _odds(model: WebModel) -> NDArray[np.float64]:
    inside = [model.inside, model.home_links, _MENU, _SECTION, _POPULAR]
    return np.array([*inside, _LINKS_OUT, _OUTSIDE_FRESH, _OUTSIDE_HOME])


def _linking(flags: NDArray[np.uint8]) -> int:
    return int(np.count_nonzero(flags & DANGLING == 0))


def site_sizes(model: WebModel) -> NDArray[np.int64]:
    """Return the pages per site: 1 + a Lomax variable, scaled so that the sum is the number of pages."""
    tail = 1.0 / power(1.0 - drawn(model.seed, "sizes", model.sites), 1.0 / (model.size_exponent - 1.0)) - 1.0
    tail[drawn(model.seed, "single sites", model.sites) < model.single_sites] = 0.0
    tail += 1e-9  # all may be 0, and the sum is a divisor
    np.minimum(tail, _most_pages(tail), out=tail)
    ends = np.cumsum(tail)
    # Rounding the cumulative sum instead of the sizes loses no page.
    ends = np.floor(ends * ((model.pages - model.sites) / ends[-1])).astype(np.int64)
    ends[-1] = model.pages - model.sites
    sizes: NDArray[np.int64] = 1 + np.diff(ends, prepend=0)
    return sizes


def _most_pages(tail: NDArray[np.float64]) -> float:
    """Return the limit of a site's size at which the largest site has the share _LARGEST_SITE of all pages."""
    others = float(np.cumsum(tail)[-1]) - float(tail.max())
    return max(others * (_LARGEST_SITE / (1.0 - _LARGEST_SITE)), 1e-9)


def _family_odds(model: WebModel) -> NDArray[np.float64]:
    """Return the odds of `shape_sites`.

    Half of the dynamic families are lists, whose items are dangling; the trees have the rest of the dangling pages.
    """
    families = model.dynamic + model.deep
    dangling = max(0.0, (model.dangling - 0.5 * model.dynamic) / (1.0 - families))
    return np.array([dangling, model.dynamic / families if families else 0.0, 0.5])


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
    room = int(1.2 * model.links_per_page * model.pages) + 2 * model.pages + 64 * _STEPS
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
