"""A crawl of several processes has a mode and a partition function that fit each other, and is polite to hosts of others."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trapline.cli import run
from trapline.crawler.discovery.scope import Scope
from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.errors import ConfigError
from trapline.graph import save
from trapline.graph.graph import csr_from_edges
from trapline.graph.sites import recorded_graph
from trapline.graph.strings import StoredStrings
from trapline.parallel import CROSS_OVER, FIREWALL
from trapline.parallel.folder.link_policy import LinkPolicy, replicated_urls
from trapline.parallel.folder.manifest import create, read
from trapline.parallel.partition import Partitioning

Captured = pytest.CaptureFixture[str]
SEED = "http://a.test/"
NO_ADDRESS_DELAY = CrawlOptions((SEED,), rules=live_rules(ip_delay_s=0.0))
OWN = CrawlOptions((SEED,), own_hosts=("test",))


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--mode", "cross-over"], "--delay only for its own visits; name your hosts with --own-hosts"),
        (["--partition", "url-hash"], "--delay only for its own visits; name your hosts with --own-hosts"),
        (["--mode", "firewall"], "--ip-delay only for its own visits; give --ip-delay 0, or name your hosts"),
        (["--partition", "site-hash"], "--ip-delay only for its own visits; give --ip-delay 0"),
        (["--mode", "firewall", "--partition", "address"], "--partition address works only with --mode exchange"),
        (["--mode", "fire-wall"], "not a mode of a live crawl; "),
        (["--mode", "dynamic"], "not a mode of a live crawl; "),
        (["--partition", "site"], "unknown partition function 'site'; did you mean 'site-hash'?"),
        (["--partition", "suffix"], "needs the number of the process for each suffix; give --suffixes"),
        (["--suffixes", "edu=0"], "has an effect only with --partition suffix"),
        (["--partition", "suffix", "--suffixes", "edu=9"], "no process 9; give a number from 0 to 2"),
        (["--mode", "firewall", "--exchange-every", "9"], "--exchange-every has no effect in mode firewall"),
        (["--replicate", "9"], "needs the in-links of an older crawl; also give --in-links"),
        (["--in-links", "."], "has an effect only with --replicate"),
        (["--own-hosts", "a.test"], "--own-hosts has no effect here"),
        (["--mode", "cross-over", "--own-hosts", "b.test"], "its host is not in --own-hosts; add the host"),
        (["--mode", "cross-over", "--own-hosts", "http://a.test/"], "not a host name; give a.test"),
        (["--mode", "cross-over", "--own-hosts", "a.test:80"], "not a host name; give a.test"),
        (["--mode", "cross-over", "--own-hosts", "a b"], "not a host name; give one such as example.org"),
        (["--mode", "cross-over", "--own-hosts", "a.test", "--refresh"], "--refresh does not work with --mode cross-over"),
        (["--partition", "url-hash", "--own-hosts", "a.test", "--refresh"], "does not work with --partition url-hash"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_one_line(
    tmp_path: Path, args: list[str], complaint: str, capsys: Captured
) -> None:
    assert run(["crawl", SEED, "-o", str(tmp_path / "c"), "--processes", "3", *args]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and complaint in lines[0]
    assert not (tmp_path / "c").exists()


def test_options_of_several_processes_need_several_processes(tmp_path: Path, capsys: Captured) -> None:
    assert run(["crawl", SEED, "-o", str(tmp_path / "c"), "--mode", "firewall"]) == 2
    assert (
        "--mode has no effect in a crawl of one process; omit it, or also give --processes N" in capsys.readouterr().err
    )


def test_a_crawl_stays_on_the_users_hosts() -> None:
    scope = Scope("any", (SEED,), own_hosts=("a.test", "b.test"))
    assert [scope.admits(url) for url in (SEED, "http://www.b.test/x", "http://c.test/", "http://xa.test/")] == [
        "", "", "host", "host",
    ]  # fmt: skip
    strict = Scope("host", (SEED,), own_hosts=("a.test", "b.test"))
    assert (strict.admits("http://b.test/"), strict.redirects_to(SEED, "http://c.test/")) == ("host", 0)
    assert strict.redirects_to(SEED, "http://b.test/") == 1


@pytest.mark.parametrize(
    ("options", "kind", "suffixes", "policy", "grows"),
    [
        (NO_ADDRESS_DELAY, "rendezvous", {}, LinkPolicy(FIREWALL), True),
        (NO_ADDRESS_DELAY, "suffix", {"test": 1}, LinkPolicy(every_pages=9), True),
        (NO_ADDRESS_DELAY, "site-hash", {}, LinkPolicy(replicated=("http://b.test/",)), False),
        (OWN, "url-hash", {}, LinkPolicy(), False),
        (OWN, "rendezvous", {}, LinkPolicy(CROSS_OVER), False),
    ],
)
def test_a_manifest_keeps_the_policy_and_grows_only_if_sites_move_to_new_partitions(
    tmp_path: Path, options: CrawlOptions, kind: str, suffixes: dict[str, int], policy: LinkPolicy, grows: bool
) -> None:
    made = create(tmp_path / "c", options, Partitioning(kind, 2, suffixes), policy)
    assert read(tmp_path / "c") == made
    if grows:
        assert made.grown(3).partitioning == Partitioning(kind, 3, suffixes)
    else:
        with pytest.raises(ConfigError, match=r"cannot grow: .*; continue with 2 processes"):
            made.grown(3)


def test_a_single_partition_does_not_grow_into_an_impolite_crawl(tmp_path: Path) -> None:
    made = create(tmp_path / "c", CrawlOptions((SEED,)), Partitioning("rendezvous", 1), LinkPolicy(FIREWALL))
    with pytest.raises(ConfigError, match="delays only for its own visits; continue with 1 process"):
        made.grown(2)


@pytest.mark.parametrize(
    "kind, policy", [("rendezvous", LinkPolicy(CROSS_OVER)), ("url-hash", LinkPolicy()), ("site-hash", LinkPolicy())]
)
def test_a_manifest_that_would_be_impolite_is_refused(tmp_path: Path, kind: str, policy: LinkPolicy) -> None:
    made = create(tmp_path / "c", OWN, Partitioning(kind, 2), policy)
    replace(made, options=replace(OWN, own_hosts=())).write()
    with pytest.raises(ConfigError, match="does not fit the options"):
        read(tmp_path / "c")


def test_the_most_linked_urls_in_scope_are_replicated(tmp_path: Path) -> None:
    urls = [f"http://{host}.test/{n}" for host in "ab" for n in range(3)]
    sources, targets = np.array([0, 1, 2, 0, 2, 3], np.int32), np.array([4, 4, 4, 1, 1, 5], np.int32)
    links = csr_from_edges(sources, targets, len(urls))
    graph = tmp_path / "graph"
    save(recorded_graph(StoredStrings.of(urls), tmp_path, *links, "test"), graph)
    assert replicated_urls(graph, 2, Scope("any"), ()) == (urls[4], urls[1])
    assert replicated_urls(graph, 2, Scope("any"), (urls[4],)) == (urls[1],)
    assert replicated_urls(graph, 1, Scope("host", (SEED,)), ()) == (urls[1],)
