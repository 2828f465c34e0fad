"""Every href is resolved to the page of its canonical URL, whatever the resolver's memory holds. New pages are numbered in order of
discovery."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.crawler.discovery import link_resolver, link_urls
from trapline.crawler.discovery.extra_pages import FETCHED_REQUISITE, LIST, REQUISITE, ExtraPages
from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.discovery.link_urls import MOST_NEW
from trapline.crawler.discovery.scope import Scope
from trapline.crawler.discovery.seen import Lookup, SeenTable
from trapline.crawler.discovery.sites import Sites
from trapline.crawler.discovery.url_store import UrlStore
from trapline.crawler.engine.records import FULL, TOO_MANY, Batch
from trapline.crawler.store.outbox import Outbox
from trapline.fetch.html.page import MOST_LINKS, Links
from trapline.fetch.urls import canonical, is_dynamic, origin
from trapline.frontier import Frontier, Rules
from trapline.frontier.journal import Journal
from trapline.frontier.layout import DYNAMIC, ELSEWHERE
from trapline.strategies import load_strategy

HOME = "http://a.org/"


class World:
    """A `LinkResolver` and everything that it fills."""

    def __init__(
        self,
        scope: Scope | None = None,
        strategy: str = "breadth-first",
        rules: Rules | None = None,
        **inputs: link_resolver.Values,
    ) -> None:
        journal = Journal()
        self.frontier = Frontier(load_strategy(strategy), rules or Rules(), journal=journal)
        self.batches: list[Batch] = []
        self.outbox, self.url_store, self.sites = Outbox(journal, self.batches.append), UrlStore(None), Sites(0.0)
        self.seen, self.rejected_links = SeenTable(), Counter[str]()
        self.link_resolver = LinkResolver(
            self.frontier,
            self.sites,
            self.seen,
            self.url_store,
            scope or Scope("any"),
            self.outbox,
            inputs,
            lambda site: 7,
            self.rejected_links,
        )
        self.home = self.link_resolver.seed_pages([HOME], 0.0)[0]

    def pages(self, hrefs: list[str], url: str = HOME, base: str = "") -> list[int]:
        self.link_resolver.seed_pages([url], 0.0)
        pages: list[int] = self.link_resolver.pages_of(url, base, Links.of(hrefs), 0.0).pages.tolist()
        return pages

    def urls(self, hrefs: list[str], url: str = HOME, base: str = "") -> list[str]:
        return self.url_store.urls(self.pages(hrefs, url, base))


# ---- against a simple oracle


class Oracle:
    """A dictionary of canonical URLs."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.ids: dict[str, int] = {}
        self.rejected_links: dict[str, int] = {}

    def page(self, url: str) -> int:
        return self.ids.setdefault(url, len(self.ids))

    def pages(self, hrefs: list[str], url: str, base: str) -> list[int]:
        self.page(url)
        seen_from = (canonical(base, url) if base else None) or url
        targets = [target for target in (canonical(href, seen_from) for href in hrefs) if target is not None]
        return list(dict.fromkeys(self.page(target) for target in targets if self.is_in_scope(target)))

    def is_in_scope(self, target: str) -> bool:
        why = "" if target in self.ids else self.scope.admits(target)
        if why:
            self.rejected_links[why] = self.rejected_links.get(why, 0) + 1
        return not why


SEGMENTS = st.sampled_from(["x", "y", ".", "..", "", "a b", "%7e", "~", "x:y", "é", "\\", "...", "http", "q.html"])
PATHS = st.lists(SEGMENTS, max_size=4).map("/".join)
TAILS = st.sampled_from(["", "", "?q=1", "?a=b&c", "#f", "?", "?#", "?x=/../y"])
HOSTS = st.sampled_from(["a.org", "b.org", "A.org", "a.org:80", "a.org:8080", "me@b.org", "b.org.", "[", ""])
SCHEMES = st.sampled_from(["http://", "https://", "//", "HTTP://", "http:", "mailto:", "http:\\\\", "ftp://"])
ABSOLUTE = st.builds(lambda *parts: "".join(parts), SCHEMES, HOSTS, st.sampled_from(["/", "", "\\"]), PATHS, TAILS)
RELATIVE = st.builds(
    lambda *parts: "".join(parts), st.sampled_from(["", "/", "../", "./", "?", "#", " ", "\t/"]), PATHS, TAILS
)
LONG = st.builds(
    lambda href, part: href + part * 3000, st.one_of(ABSOLUTE, RELATIVE), st.sampled_from(["#abc", "../", "?zz", "/xy"])
)
HREFS = st.lists(st.one_of(ABSOLUTE, RELATIVE, LONG, st.text(max_size=6)), max_size=8)
URLS = st.builds(
    lambda host, path, tail: canonical(f"http://{host}/{path}{tail}") or HOME,
    st.sampled_from(["a.org", "b.org"]),
    PATHS,
    st.sampled_from(["", "?q=1"]),
)
BASES = st.one_of(st.just(""), st.just(""), RELATIVE, ABSOLUTE)
WEB = st.lists(st.tuples(HREFS, URLS, BASES), max_size=8)


@settings(max_examples=examples(60))
@given(WEB, st.sampled_from(["any", "host"]), st.sampled_from([1, 4, 1 << 15]))
def test_every_href_is_the_page_of_its_canonical_url(
    web: list[tuple[list[str], str, str]], kind: str, slots: int
) -> None:
    """This holds for a large memory, and for one that is overwritten all the time."""
    scope = Scope(kind, (HOME,))
    world, oracle = World(scope), Oracle(scope)
    world.link_resolver.seed_pages([url for _, url, _ in web], 0.0)  # first, because a seed may be out of scope
    for url in (HOME, *(url for _, url, _ in web)):
        oracle.page(url)
    world.link_resolver._lookup = Lookup(world.seen, slots)
    for hrefs, url, base in web + web:
        assert world.pages(hrefs, url, base) == oracle.pages(hrefs, url, base)
    assert world.rejected_links == oracle.rejected_links
    assert world.url_store.urls(list(oracle.ids.values())) == list(oracle.ids)
    world.outbox.flush()
    page_rows = [page for batch in world.batches for page in batch.pages]
    assert page_rows == [(page, world.sites.named(origin(url)).id, url) for url, page in oracle.ids.items()]  # type: ignore[union-attr]
    assert [site for batch in world.batches for site in batch.sites] == [(s.id, s.origin) for s in world.sites]


# ---- single rules


def test_pages_come_in_order_of_the_links_and_each_once() -> None:
    world = World()
    assert world.urls(["b", "a", "/b", "./a", "#top"], "http://a.org/") == ["http://a.org/b", "http://a.org/a", HOME]


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("y", "http://a.org/d/y"),
        ("/y", "http://a.org/y"),
        ("../y", "http://a.org/y"),
        ("../../../y", "http://a.org/y"),
        ("?n=2", "http://a.org/d/x?n=2"),
        ("", "http://a.org/d/x?n=1"),
        ("#f", "http://a.org/d/x?n=1"),
        ("y ", "http://a.org/d/y"),
        ("y #f", "http://a.org/d/y%20"),
        ("//b.org/y", "http://b.org/y"),
        ("https://a.org/y", "https://a.org/y"),
    ],
)
def test_hrefs_are_relative_to_the_page(href: str, url: str) -> None:
    assert World().urls([href], "http://a.org/d/x?n=1") == [url]


def test_a_query_alone_is_another_page_on_every_page() -> None:
    world = World()
    assert world.urls(["?n=2"], "http://a.org/x") == ["http://a.org/x?n=2"]
    assert world.urls(["?n=2"], "http://a.org/y") == ["http://a.org/y?n=2"]


def test_a_base_holds_only_for_its_own_page() -> None:
    world = World()
    assert world.urls(["y", "/z"], "http://a.org/x", "http://b.org/d/") == ["http://b.org/d/y", "http://b.org/z"]
    assert world.urls(["y", "/z"], "http://a.org/x") == ["http://a.org/y", "http://a.org/z"]


@pytest.mark.parametrize("base", ["mailto:x", "http://[", "javascript:0"])
def test_an_invalid_base_is_ignored(base: str) -> None:
    assert World().urls(["y"], "http://a.org/d/x", base) == ["http://a.org/d/y"]


def test_links_that_are_not_pages_are_ignored_and_not_counted() -> None:
    world = World()
    assert world.pages(["mailto:me@a.org", "javascript:0", "http://[", "ftp://a.org/", "/" + 9000 * "x"]) == []
    assert not world.rejected_links


def test_links_out_of_scope_are_counted_by_reason() -> None:
    world = World(Scope("host", (HOME,), exclude=(r"\.pdf$",)))
    assert world.urls(["http://b.org/", "x.pdf", "y", "http://b.org/z"]) == ["http://a.org/y"]
    world.pages(["x.pdf"])
    assert world.rejected_links == {"host": 2, "exclude": 2}


def test_links_and_entries_that_lead_to_a_list_or_a_requisite_have_to_be_in_scope() -> None:
    world = World(Scope("host", (HOME,), include=("a.org/docs",)))
    resolver, extra_pages = world.link_resolver, world.link_resolver.extra_pages
    new_pages: list[int] = []
    extra_pages.on_page.append(new_pages.append)
    sitemap, _ = resolver.list_page("http://a.org/map.xml", 0.0)
    image, icon = resolver.requisite_pages(["http://b.org/x.png", "http://a.org/docs/icon"], 0.0)
    (done,) = resolver.requisite_pages(["http://a.org/docs/done"], 0.0)
    extra_pages.note(sitemap, LIST, LIST)
    for page in (image, icon, done):
        extra_pages.note(page, REQUISITE if page != done else REQUISITE | FETCHED_REQUISITE, REQUISITE)
    hrefs = ["map.xml", "http://b.org/x.png", "docs/icon", "docs/../docs/icon", "docs/done"]
    for _ in range(2):
        assert world.pages(hrefs) == [icon] and world.rejected_links == {"include": 1, "host": 1}
        world.rejected_links.clear()
    urls = ["http://a.org/map.xml", "http://a.org/docs/icon", "http://a.org/docs/done"]
    pages, reasons = resolver.entry_pages(urls, 0.0)
    assert pages[1] == icon and max(pages[0], pages[2]) < 0 and reasons == {"include": 1}
    assert resolver.list_page(urls[0], 0.0) == (sitemap, ""), "as a list it is still admitted"
    world.outbox.flush()
    assert extra_pages.count == 4 and new_pages == [], "the frontier has not taken it"
    world.frontier.discover(world.pages(hrefs), 0.0)
    world.outbox.flush()
    assert new_pages == [icon]


@given(st.lists(st.tuples(st.integers(0, 3000), st.sampled_from([0, LIST])), max_size=6), st.data())
def test_extra_pages_are_found_among_any_numbers(notes: list[tuple[int, int]], data: st.DataObject) -> None:
    """The numbers are those noted, others on both sides of the end of the table, and below 0."""
    extra_pages = ExtraPages(World().frontier)
    for page, kind in notes:
        extra_pages.note(page, kind, LIST)
    kinds = dict(notes)
    assert extra_pages.count == sum(kind > 0 for kind in kinds.values())
    number = st.sampled_from([*kinds, 0, -1, -40]) | st.integers(-40, 9000)
    pages = data.draw(st.lists(number, max_size=9))
    assert extra_pages.among(pages) == [at for at, page in enumerate(pages) if kinds.get(page)]


def test_extra_pages_are_found_before_and_after_numbers_that_are_new() -> None:
    extra_pages = ExtraPages(World().frontier)
    extra_pages.note(5, LIST, LIST)
    assert extra_pages.among([5, 5_000]) == [0]
    assert extra_pages.among([-2, 50_000, 5]) == [2]
    assert extra_pages.among(range(200_000)) == [5]


def test_seeds_are_accepted_whatever_the_scope() -> None:
    world = World(Scope("host", (HOME,)))
    page = world.link_resolver.seed_pages(["http://b.org/robots.txt"], 0.0)
    assert world.url_store.urls(page) == ["http://b.org/robots.txt"]


def test_a_new_site_is_registered_with_its_address_and_its_pages_with_their_kind() -> None:
    world = World()
    world.pages(["http://b.org/?q", "http://b.org/", "x?y=1"])
    sites = world.frontier.state.site[: world.frontier.sites]
    assert len(world.sites) == world.frontier.sites == 2 and sites["group"].tolist() == [7, 7]
    urls = world.url_store.urls(list(range(world.frontier.pages)))
    dynamic = (world.frontier.state.page["marks"][: world.frontier.pages] & DYNAMIC) > 0
    assert dynamic.tolist() == [is_dynamic(url) for url in urls]


def test_the_inputs_of_the_page_rank_are_set_for_new_pages() -> None:
    world = World(strategy="omniscient", pagerank=lambda urls: [float(len(url)) for url in urls])
    world.pages(["x", "long", "x"])
    world.pages(["longer", "x"])
    column = world.frontier.state.columns[:, world.frontier.strategy.page.columns.index("pagerank")]
    urls = world.url_store.urls(list(range(world.frontier.pages)))
    assert column[: world.frontier.pages].tolist() == [len(url) for url in urls]


# ---- the memory


def test_a_known_link_is_not_resolved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for a page by its URL or by another spelling, for a link out of scope, and for a link that is not a page."""
    world = World(Scope("host", (HOME,)))
    hrefs = ["/x", "y/../z", "//A.org/w", "http://b.org/", "mailto:me", "?%C3%A9", "?é", "../..", "HTTP://a.org"]
    before = world.pages(hrefs)
    monkeypatch.setattr(link_urls, "canonical", None)
    monkeypatch.setattr(link_urls, "plain", None)
    assert world.pages(hrefs) == before and len(before) == 5


# ---- limits per page


def test_a_page_resolves_a_bounded_number_of_new_links_and_the_others_when_they_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_urls, "MOST_NEW", 3)
    world = World()
    hrefs = ["a", "mailto:x", "b", "c", "a", "d"]
    assert world.urls(hrefs) == ["http://a.org/a", "http://a.org/b"]  # a link that is not a page has to be resolved too
    assert world.rejected_links == {TOO_MANY: 2}
    assert world.urls(hrefs) == [f"http://a.org/{name}" for name in "abcd"]
    assert world.rejected_links == {TOO_MANY: 2}


def test_links_that_differ_in_their_fragments_count_once_as_new_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_urls, "MOST_NEW", 3)
    world = World()
    hrefs = [*(f"a#{n}" for n in range(9)), "#top", "b", "b#x?y", "c", "d#1"]
    for _ in range(2):
        assert world.urls(hrefs)[:4] == ["http://a.org/a", HOME, "http://a.org/b", "http://a.org/c"]
    assert world.rejected_links == {TOO_MANY: 1}
    others = own_world("http://a.org")
    links = Links.of([*(f"http://b.org/{n % 2}#{n}" for n in range(8)), "http://b.org/2", "http://b.org/3#x"])
    for _ in range(2):
        foreign = others.link_resolver.pages_of(HOME, "", links, 0.0).foreign
        assert list(foreign) == [f"http://b.org/{n}" for n in range(3)]
    assert others.rejected_links == {TOO_MANY: 1 + 1}


def test_the_urls_of_new_links_of_one_page_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_urls, "MOST_NEW_BYTES", 3 * len("http://a.org/long/x"))
    world = World()
    hrefs = [*"abcde"]
    assert len(world.pages(hrefs, base="/long/")) == 3
    assert world.rejected_links == {TOO_MANY: 2}
    assert len(world.pages(hrefs, base="/long/")) == 5  # no URL is made for a known link
    others = own_world("http://a.org")
    links = Links.of([f"http://b.org/long/{name}" for name in hrefs])
    for _ in range(2):
        assert len(others.link_resolver.pages_of(HOME, "", links, 0.0).foreign) == 3
    assert others.rejected_links == {TOO_MANY: 2 + 2}


def test_a_site_has_at_most_a_multiple_of_its_page_limit_as_known_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_resolver, "KNOWN_PER_FETCHED", 2)
    world = World(rules=Rules(pages_per_site=2))
    world.frontier.discover([world.home], 0.0)
    hrefs = ["a", "b", "c", "d", "http://b.org/", "a"]
    for _ in range(2):
        pages = world.pages(hrefs)
        assert world.url_store.urls(pages) == ["http://a.org/a", "http://a.org/b", "http://a.org/c", "http://b.org/"]
        world.frontier.discover(pages, 0.0)
    assert world.rejected_links == {FULL: 2}
    assert (
        len(world.link_resolver.seed_pages([f"http://a.org/seed{n}" for n in range(5)], 0.0)) == 5
    )  # seeds always count
    assert list(world.pages(["http://a.org:25/"])) == []  # the limit is reached


def test_the_work_for_new_links_does_not_grow_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has the maximum number of links, all to new sites, which cost most."""
    calls: Counter[str] = Counter()

    def counted(href: str, base: str) -> str | None:
        calls["canonical"] += 1
        return canonical(href, base)

    monkeypatch.setattr(link_urls, "canonical", counted)
    world = World()
    monkeypatch.setattr(world.frontier, "add_sites", _counting(world.frontier.add_sites, calls))
    assert len(world.pages([f"//h{n}.org" for n in range(MOST_LINKS)])) == MOST_NEW
    assert calls == {"canonical": MOST_NEW, "add_sites": 1}
    assert [site.origin for site in world.sites][1:] == [f"http://h{n}.org" for n in range(MOST_NEW)]
    assert world.frontier.sites == len(world.sites)


def _counting(add: Callable[..., int], calls: Counter[str]) -> Callable[..., int]:
    def added(*arguments: Any) -> int:
        calls["add_sites"] += 1
        return add(*arguments)

    return added


def test_a_page_sends_a_bounded_number_of_foreign_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_urls, "MOST_NEW", 2)
    world = own_world("http://a.org")
    links = Links.of([f"http://other.org/{n}" for n in range(5)])
    for _ in range(3):  # the last time all are known to be foreign
        pages, foreign, _ = world.link_resolver.pages_of(HOME, "", links, 0.0)
        assert list(foreign) == ["http://other.org/0", "http://other.org/1"]
        assert pages.tolist() == [ELSEWHERE] * 2
    assert world.rejected_links == {TOO_MANY: 3 + 3 + 3}


# ---- pages of other partitions


def own_world(*names: str) -> World:
    """Return a world that owns only these sites."""
    world = World()
    world.link_resolver = LinkResolver(
        world.frontier, world.sites, world.seen, world.url_store, Scope("any"), world.outbox, {}, lambda site: 7,
        world.rejected_links, lambda url: origin(url) in names,
    )  # fmt: skip
    return world


def test_foreign_links_are_recognized_every_time() -> None:
    world = own_world("http://a.org")
    hrefs = ["/b", "http://other.org/x", "http://other.org/x#top", "http://other.org/y", "http://third.org/", "/b"]
    for _ in range(2):  # the second time they are in the memory
        pages, foreign, _ = world.link_resolver.pages_of(HOME, "", Links.of(hrefs), 0.0)
        assert list(foreign) == ["http://other.org/x", "http://other.org/y", "http://third.org/"]
        assert pages.tolist()[1:] == [ELSEWHERE] * 3
        assert world.url_store.urls(pages.tolist()[:1]) == ["http://a.org/b"]
    assert world.rejected_links == {}
    assert [site.origin for site in world.sites] == ["http://a.org"]


def test_relative_links_of_a_page_with_a_foreign_base_are_foreign() -> None:
    world = own_world("http://a.org")
    pages, foreign, _ = world.link_resolver.pages_of(
        HOME, "http://other.org/d/", Links.of(["x", "../y", "http://a.org/z"]), 0.0
    )
    assert list(foreign) == ["http://other.org/d/x", "http://other.org/y"]
    assert world.url_store.urls(pages.tolist()[:1]) == ["http://a.org/z"]


def test_links_to_sites_that_moved_are_foreign_even_if_their_pages_are_known() -> None:
    world = own_world("http://a.org", "http://b.org")
    hrefs = ["/b", "http://b.org/x", "http://b.org/x#top", "HTTP://B.ORG/x", "http://b.org/new"]
    before, *_ = world.link_resolver.pages_of(HOME, "", Links.of(hrefs[:-1]), 0.0)
    assert world.url_store.urls(before.tolist()) == ["http://a.org/b", "http://b.org/x"]
    moved = world.sites.named("http://b.org")
    assert moved is not None
    world.link_resolver.foreign.leave([moved.id])
    world.link_resolver._owns = lambda url: origin(url) == "http://a.org"
    for _ in range(2):
        pages, foreign, _ = world.link_resolver.pages_of(HOME, "", Links.of(hrefs), 0.0)
        assert list(foreign) == ["http://b.org/x", "http://b.org/new"]
        assert pages.tolist() == [before[0], ELSEWHERE, ELSEWHERE]


def test_pages_that_are_handed_over_are_accepted_whatever_the_scope() -> None:
    world = own_world()
    urls = ["http://b.org/x", "http://c.org/y?z", "http://b.org/w"]
    pages = world.link_resolver.adopt(urls, 0.0)
    assert world.url_store.urls(pages) == urls == world.link_resolver.urls(pages)
    assert world.link_resolver.find(urls) == pages
    assert [site.origin for site in world.sites][-2:] == ["http://b.org", "http://c.org"]
    assert [page for page, _, _ in world.outbox.pages][-3:] == pages


def test_seeds_and_arrivals_of_other_partitions_are_rejected() -> None:
    world = own_world("http://a.org")
    assert world.link_resolver.seed_pages(["http://other.org/", HOME], 0.0) == [world.home]
    ours, theirs = world.link_resolver.arrived(["http://a.org/new", "http://other.org/"], 0.0)
    assert world.url_store.urls([ours]) == ["http://a.org/new"]
    assert theirs < 0
