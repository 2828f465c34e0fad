"""A crawl may grow at any moment, and any partition may be killed. Each reachable page is fetched once, except for fetches that a kill
lost. Each site and address has one visitor at a time, who keeps the delay."""

import json
import random
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.parallel.growing_world import (
    DELAY_S,
    NAMES,
    PAGES,
    REFUSING,
    URLS,
    Crawl,
    copy_of,
    links_of,
    reachable,
    rows,
)
from trapline.crawler.engine.records import AS_BEFORE
from trapline.crawler.inspect.database_reader import open_database
from trapline.crawler.inspect.summary import processor_of
from trapline.crawler.store.database import PROCESSOR
from trapline.errors import ConfigError
from trapline.fetch.html.page import Links
from trapline.parallel.folder.link_policy import LinkPolicy
from trapline.parallel.folder.merged import merge
from trapline.parallel.live.site_owner import host_of
from trapline.processor import ProcessorTime

# Includes whole rounds, because a crawl of forty pages would hardly advance by single steps.
ACTIONS = (
    "round",
    "round",
    "grow",
    "kill",
    "fetch",
    "flush",
    "commit",
    "commit one",
    "receive",
    "receive one",
    "settle",
    "unanswered",
    "wait",
)
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 7), st.integers(0, 7)), max_size=30)


def act(crawl: Crawl, action: str, one: int, other: int) -> None:
    node, sender = (crawl.nodes[number % len(crawl.nodes)] for number in (one, other))
    match action:
        case "round":
            crawl.round()
            crawl.world.now += 1.0
        case "fetch":
            node.fetch()
        case "flush":
            node.outbox.flush()
        case "commit":
            node.outbox.flush()
            node.commit()
        case "commit one":
            node.commit(1)
        case "receive" | "receive one" if node is not sender:
            node.receive(sender, 1 if action == "receive one" else 100)
        case "settle" | "unanswered":
            node.settle(action == "settle")
        case "wait":
            crawl.world.now += 0.4 * one
        case "kill":
            crawl.kill(node.own)
        case "grow" if len(crawl.manifest.sizes) < 4:
            crawl.grow(1 + one % 2, in_order=other % 2 == 0)


@settings(deadline=None, max_examples=examples(25))
@given(
    st.integers(1, 3),
    st.sets(st.sampled_from(NAMES)),
    st.booleans(),
    STEPS,
    st.integers(0, 2),
    st.sampled_from([0, 3, 1000]),
)
def test_no_page_is_lost_and_none_is_fetched_twice(
    tmp_path_factory: pytest.TempPathFactory,
    partitions: int,
    table: set[str],
    fickle: bool,
    steps: list[tuple[str, int, int]],
    more: int,
    every_pages: int,
) -> None:
    policy = LinkPolicy(every_pages=every_pages)
    crawl = Crawl(tmp_path_factory.mktemp("grown") / "c", partitions, table, fickle, policy=policy)
    for step in steps:
        act(crawl, *step)
        assert_one_owner(crawl)
    if more:
        crawl.grow(more, in_order=True)
    crawl.run_to_end()
    assert_one_owner(crawl)
    made, arrived = (sum(node.exchange.count(True)[at] for node in crawl.nodes) for at in (1, 2))
    assert made == arrived
    assert crawl.world.requested - crawl.world.lost == dict.fromkeys(reachable(), 1)
    crawl.close()
    check_merged(crawl)


@settings(deadline=None, max_examples=examples(10))
@given(st.integers(1, 3), st.sets(st.sampled_from(NAMES)), STEPS, st.integers(1, 2))
def test_each_refetched_page_has_one_owner_that_knows_all_its_fetches(
    tmp_path_factory: pytest.TempPathFactory,
    partitions: int,
    table: set[str],
    steps: list[tuple[str, int, int]],
    more: int,
) -> None:
    crawl = Crawl(tmp_path_factory.mktemp("grown") / "c", partitions, table, refresh="uniform")
    for step in steps:
        act(crawl, *step)
    crawl.grow(more, in_order=True)
    crawl.run_to_end()
    assert crawl.world.requested - crawl.world.lost == dict.fromkeys(reachable(), 1)
    found: Counter[str] = Counter()
    for node in crawl.nodes:
        assert node.refetch is not None
        refresher, pages = node.refetch.agenda.refresher, [*node.reading.pages()]
        for page, _, url in pages:
            if page in refresher:
                assert node.site_owners.owns(url.rpartition("/")[0]) and node.refetch.copies.of([page]) == [
                    copy_of(url)
                ]
                found[url] += 1 + refresher.explain(page, crawl.world.now)["crawls"]
    once = Counter(dict.fromkeys(reachable() - {REFUSING}, 1))
    assert found == once + crawl.world.requested_again - crawl.world.lost_again
    crawl.close()


def assert_one_owner(crawl: Crawl) -> None:
    for name in NAMES:
        assert sum(node.site_owners.owns(f"http://{name}") is True for node in crawl.nodes) <= 1


def check_merged(crawl: Crawl) -> None:
    """Check that the merged database has each page once, with its result and its links."""
    merge(crawl.manifest)
    folder = crawl.manifest.folder
    pages = dict(rows(folder, "select id, url from page"))
    assert sorted(pages) == list(range(len(pages))) and sorted(pages.values()) == sorted(reachable())
    origins = dict(rows(folder, "select id, origin from site"))
    assert sorted(origins) == list(range(len(set(origins.values()))))
    assert all(str(url).startswith(f"{origins[site]}/") for url, site in rows(folder, "select url, site from page"))
    addresses = [address for (address,) in rows(folder, "select address from address")]
    assert len(addresses) == len(set(addresses))
    fetched = rows(folder, "select page, result, links from fetch")
    assert sorted(pages[page] for page, _, _ in fetched) == sorted(reachable())
    for page, _, links in fetched:
        assert targets(pages, links) == (set(links_of(pages[page])) if pages[page] != REFUSING else set())


def targets(pages: dict[Any, Any], links: Any) -> set[Any]:
    return {pages[int.from_bytes(links[at : at + 4], "little")] for at in range(0, len(links), 4)}


def test_every_fetch_of_a_page_has_its_foreign_links(tmp_path: Path) -> None:
    """This includes a fetch that found fewer foreign links than the one before, and a fetch that found the same ones."""
    crawl = Crawl(tmp_path / "c", 3, set(NAMES))
    crawl.run_to_end()
    node = max(crawl.nodes, key=lambda node: len(node.foreign_links()))
    (page, visit), count = Counter(lead[:2] for lead in node.foreign_links()).most_common(1)[0]
    _, _, url = next(lead for lead in node.foreign_links() if lead[0] == page)
    node.add_refetch(page, visit + 1, [url])
    node.add_refetch(page, visit + 2, [*AS_BEFORE])
    (name,) = rows(node.reading.folder, f"select url from page where id = {page}")[0]
    crawl.close()
    merge(crawl.manifest)
    sql = f"select links from fetch join page on page.id = page where url = '{name}' order by seq"
    pages = dict(rows(crawl.manifest.folder, "select id, url from page"))
    first, again, as_before = (targets(pages, links) for (links,) in rows(crawl.manifest.folder, sql))
    assert count > 1 and first == set(links_of(name)) and again == as_before == {url}


def test_a_new_partition_waits_for_all_old_ones(tmp_path: Path) -> None:
    """A page that an old partition has fetched does not count as new, even if another old partition has already sent a link to it."""
    crawl = Crawl(tmp_path / "c", 2, set(NAMES))
    for _ in range(30):
        crawl.round()
        crawl.world.now += 1.0
    crawl.grow(3, in_order=True)
    old, new = crawl.nodes[:2], crawl.nodes[2:]
    for node in crawl.nodes:
        node.commit()
    for node in new:
        node.receive(old[0])
        assert not node.site_owners.is_whole and not node.fetch()
    assert not any(node.site_owners.owns(url.rpartition("/")[0]) for url in URLS for node in new)
    for node in new:
        node.receive(old[1])
        assert node.site_owners.is_whole
    assert any(node.frontier.pages for node in new)
    crawl.run_to_end()
    assert crawl.world.requested == dict.fromkeys(reachable(), 1)
    crawl.close()


@pytest.mark.parametrize("rounds", [6, 10, 14])
def test_the_answer_of_a_registrar_holds_when_another_takes_its_place(tmp_path: Path, rounds: int) -> None:
    """The name servers give another answer now, which would lead to a second owner."""
    crawl = Crawl(tmp_path / "c", 2, set(), fickle=True)
    for _ in range(rounds):
        crawl.round()
        crawl.world.now += 1.0
    before = {host: address for node in crawl.nodes for host, address in node.site_owners._addresses.items()}
    crawl.grow(6, in_order=True)
    crawl.run_to_end()
    said = {(host, address) for node in crawl.nodes for host, address in node.site_owners._addresses.items()}
    assert before and before.items() <= said and len(said) == len(NAMES)
    assert crawl.world.requested == dict.fromkeys(reachable(), 1)
    crawl.close()


def test_links_to_moved_pages_go_to_the_new_owner_even_from_the_old_one(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path / "c", 1, set(NAMES))
    crawl.run_to_end()
    crawl.grow(2, in_order=True)
    crawl.run_to_end()
    old = crawl.nodes[0]
    moved = [url for url in sorted(reachable()) if old.site_owners.where(url.rpartition("/")[0]) != 0]
    stayed = sorted(reachable().difference(moved))
    assert moved and stayed and old.link_resolver.find(moved) != [-1] * len(moved)
    found = old.link_resolver.pages_of(stayed[0], "", Links.of([*stayed, *moved]), crawl.world.now)
    assert (list(found.foreign), found.pages[: len(stayed)].tolist()) == (moved, old.link_resolver.find(stayed))
    crawl.close()


def test_only_new_partitions_get_sites(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path / "c", 3, set(NAMES))
    owner = {name: crawl.nodes[0].site_owners.where(f"http://{name}") for name in NAMES}
    crawl.grow(4, in_order=False)
    for name, before in owner.items():
        now = crawl.nodes[0].site_owners.where(f"http://{name}")
        assert now == before or now >= 3
    crawl.close()


def test_a_crawl_grows_and_does_not_shrink(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path / "c", 2, set())
    crawl.close()
    manifest = crawl.manifest.grown(4)
    assert (manifest.sizes, manifest.grown(4)) == ((2, 4), manifest)
    with pytest.raises(ConfigError, match="it can grow, but not shrink"):
        manifest.grown(3)
    assert json.loads((tmp_path / "c" / "parallel.json").read_text())["sizes"] == [2]


def test_the_web_of_these_tests_has_the_needed_properties() -> None:
    assert REFUSING in reachable() and len(reachable()) > len(URLS) // 2
    assert len({host_of(url.rpartition("/")[0]) for url in reachable()}) == len(NAMES) and PAGES > 2


@pytest.mark.parametrize("seed", range(30))  # five of these fail if the delay is not handed over
def test_an_address_keeps_its_delay_when_another_partition_takes_it_over(tmp_path: Path, seed: int) -> None:
    """The crawl grows just after requests to the addresses, and new partitions soon learn of sites that were not visited yet."""
    chance = random.Random(seed)
    crawl = Crawl(tmp_path / "c", 2, set(NAMES) if seed % 2 else set())
    for _ in range(chance.randrange(2, 25)):
        crawl.world.now += chance.choice([0.0, 0.2, 1.0])
        for node in crawl.nodes:
            node.fetch()
            node.settle(True)
            node.outbox.flush()
            node.commit()
            if chance.random() < 0.3:
                node.receive(crawl.nodes[1 - node.own])
    crawl.grow(2, in_order=True)
    for _ in range(8):
        crawl.world.now += DELAY_S / 10
        crawl.round()
    crawl.run_to_end()
    crawl.close()


def test_processor_times_of_all_partitions_are_added(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path / "c", 3, set(NAMES))
    crawl.run_to_end()
    for number, node in enumerate(crawl.nodes):
        one = {"user_s": 1.0 + number, "system_s": 0.5, "idle_s": 2.0}
        node.database.set_meta(f"{PROCESSOR}1", json.dumps({"loop": one, "store": one}))
    crawl.close()
    merge(crawl.manifest)
    with closing(open_database(crawl.manifest.folder)) as database:
        found = processor_of(database)
    assert found is not None and found.loop == found.store == ProcessorTime(6.0, 1.5, 6.0)
