"""The addresses of sites: a site is visited only at a checked address, moves only between visits, and is abandoned if it has no
address."""

import asyncio
import math
from collections.abc import Callable

import pytest

from tests.crawler.stage import A, B, Stage, links
from trapline.crawler.discovery.site_resolver import AT_ONCE
from trapline.fetch import failure
from trapline.fetch.dns import FAILED_S, DnsAnswer
from trapline.frontier import Rules

NO_ANSWER = "no name server answered"
RULES = Rules(delay_s=2.0, per_connection=1)


class ScriptedResolver:
    """A resolver that answers each name from a list, in order, and then repeats the last answer. A lookup takes `seconds`."""

    clock: Callable[[], float]  # set by the stage

    def __init__(self, seconds: float = 0.5, **answers: list[DnsAnswer]) -> None:
        self.answers = {f"{name}.test": said for name, said in answers.items()}
        self.lookups: list[str] = []
        self.found: dict[str, DnsAnswer] = {}  # for repeated lookups
        self.seconds = seconds
        self.under_way = self.most_under_way = 0

    def known(self, host: str) -> DnsAnswer | None:
        answer = self.found.get(host)
        return answer if answer is not None and answer.expires_at > self.clock() else None

    async def addresses(self, host: str) -> DnsAnswer:
        self.lookups.append(host)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(self.seconds)
        self.under_way -= 1
        said = self.answers.get(host, [at("127.0.0.9")])
        self.found[host] = said.pop(0) if len(said) > 1 else said[0]
        return self.found[host]


def at(*addresses: str, until: float = math.inf) -> DnsAnswer:
    return DnsAnswer(addresses, until)


def none(retry: bool, until: float = math.inf) -> DnsAnswer:
    return DnsAnswer((), until, failure.DNS, retry, NO_ANSWER)


def group(stage: Stage, origin: str = A) -> int:
    return int(stage.frontier.state.site["group"][stage.site(origin).id])


def abandoned_sites(stage: Stage) -> list[tuple[int, str, str]]:
    """Return site, kind and reason of each abandoned site, as the store receives them."""
    stage.outbox.flush()
    return [(one.site, one.kind, one.why) for batch in stage.batches for one in batch.abandoned_sites]


def test_a_site_is_visited_once_its_address_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, resolver=ScriptedResolver(a=[at("127.0.0.7")]))
    assert not stage.wires and group(stage) == -1
    stage.passes(0.5)
    assert stage.wires[0].address == "127.0.0.7" and group(stage) == 0


def test_sites_on_one_address_are_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, (f"{A}/", f"{B}/", "http://c.test/"))  # a and c share one
    assert group(stage) == group(stage, "http://c.test") != group(stage, B)
    assert sorted(wire.address for wire in stage.wires) == ["127.0.0.1", "127.0.0.2"]


@pytest.mark.parametrize(
    ("answer", "kind", "why"),
    [(none(False), "dns", NO_ANSWER), (at("10.0.0.1"), "address", "its address 10.0.0.1 is refused: private")],
)
def test_a_site_without_an_address_is_abandoned_and_the_crawl_ends(
    monkeypatch: pytest.MonkeyPatch, answer: DnsAnswer, kind: str, why: str
) -> None:
    stage = Stage(monkeypatch, resolver=ScriptedResolver(a=[answer]), allow_private=False)
    stage.passes(1.0)
    assert stage.over and not stage.wires
    assert abandoned_sites(stage) == [(stage.site().id, kind, why)]
    assert stage.crawler.tally.abandoned_sites == {kind: 1} and not stage.crawler.tally.errors


def test_only_addresses_that_the_guard_allows_count(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, resolver=ScriptedResolver(a=[at("10.0.0.1", "9.9.9.9")]), allow_private=False)
    stage.passes(1.0)
    assert stage.wires[0].address == "9.9.9.9" and stage.site().addresses == ("9.9.9.9",)


def test_a_refused_site_that_is_found_last_ends_the_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two connections finish at the same time. The first wakes the crawler; the second finds a site that is abandoned right after."""
    stage = Stage(monkeypatch, (f"{A}/", f"{B}/"), allow_private=True)
    for wire in stage.wires:
        wire.opens().answers(404)
    stage.passes(1.0)
    stage.wires[0].answers()
    stage.wires[1].answers(body=links("http://0.0.0.0/"))
    stage.passes(0.0)
    (site,) = [site.id for site in stage.sites if site.origin == "http://0.0.0.0"]
    assert stage.over and abandoned_sites(stage) == [(site, "address", "its address 0.0.0.0 is refused: unspecified")]


def test_an_unanswered_lookup_is_repeated_when_the_resolver_forgets_the_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = ScriptedResolver(a=[none(True, until=FAILED_S), none(True, until=2 * FAILED_S), at("127.0.0.1")])
    stage = Stage(monkeypatch, resolver=script)
    stage.passes(FAILED_S - 1.0)
    assert len(script.lookups) == 1  # before that, the resolver would answer from its memory
    stage.passes(3.0)
    assert len(script.lookups) == 2
    stage.passes(2 * FAILED_S)
    assert len(script.lookups) == 3 and stage.wires


def test_a_name_that_is_never_answered_abandons_its_site(monkeypatch: pytest.MonkeyPatch) -> None:
    script = ScriptedResolver(a=[none(True, until=0.0)])
    stage = Stage(monkeypatch, resolver=script)
    stage.passes(3 * FAILED_S)
    assert len(script.lookups) == 3 and stage.over and abandoned_sites(stage) == [(stage.site().id, "dns", NO_ANSWER)]


def visit(stage: Stage, number: int) -> None:
    """Make the site's next visit, of one page, from beginning to end."""
    assert len(stage.wires) == number + 1, "it was not visited"
    wire = stage.wires[number].opens()
    if wire.targets[-1] == "/robots.txt":
        wire.answers(404)
        stage.passes(1.0)
    wire.answers(keep=False)
    stage.passes(0.0)


def pages(count: int = 9) -> list[str]:
    return [f"{A}/{number}" for number in range(count)]


def test_an_expired_address_is_looked_up_after_a_visit_and_the_site_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    script = ScriptedResolver(a=[at("127.0.0.1", until=1.0), at("127.0.0.2")])
    stage = Stage(monkeypatch, pages(), resolver=script, rules=RULES)
    stage.passes(1.0)
    visit(stage, 0)
    assert len(script.lookups) == 2
    stage.passes(2.0)
    assert stage.wires[1].address == "127.0.0.2" and group(stage) == 1
    visit(stage, 1)
    assert len(script.lookups) == 2


def test_a_site_moves_only_after_its_visit_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    script = ScriptedResolver(a=[at("127.0.0.1", until=1.0), at("127.0.0.2")], seconds=1.0)
    stage = Stage(monkeypatch, pages(), resolver=script, rules=Rules(delay_s=0.0, per_connection=1), pause_s=0.0)
    stage.passes(1.0)
    visit(stage, 0)  # the answer arrives during the next visit
    stage.passes(1.5)
    assert len(stage.wires) == 2 and script.lookups == ["a.test"] * 2
    assert stage.site().addresses == ("127.0.0.1",) and group(stage) == 0
    visit(stage, 1)
    assert stage.site().addresses == ("127.0.0.2",) and group(stage) == 1
    assert stage.wires[2].address == "127.0.0.2"


def test_the_known_address_is_used_while_lookups_are_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    script = ScriptedResolver(a=[at("127.0.0.1", until=1.0), none(False)])
    stage = Stage(monkeypatch, pages(), resolver=script, rules=RULES)
    stage.passes(1.0)
    visit(stage, 0)
    stage.passes(3.0)
    assert stage.wires[1].address == "127.0.0.1"


def test_a_site_that_moves_to_a_refused_address_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    script = ScriptedResolver(a=[at("9.9.9.9", until=1.0), at("169.254.169.254")])
    stage = Stage(monkeypatch, pages(), resolver=script, rules=RULES)
    stage.passes(1.0)
    visit(stage, 0)
    stage.passes(1.0)
    assert stage.over and len(stage.wires) == 1
    stage.site_resolver._found(stage.site(), at("169.254.169.254"))  # it was looked up twice and answered twice
    assert abandoned_sites(stage) == [
        (stage.site().id, "address", "its address 169.254.169.254 is refused: link-local")
    ]


def test_the_next_address_is_tried_after_an_unreachable_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, resolver=ScriptedResolver(a=[at("127.0.0.1", "127.0.0.2", "127.0.0.3")]), rules=RULES)
    stage.passes(1.0)
    for number, address in enumerate(("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.1")):
        wire = stage.wires[number]
        assert wire.address == address
        assert stage.frontier.state.site["group"][0] == stage.link_resolver.group(address)
        wire.ends("connect")
        if number == 1:
            stage.frontier.discover(stage.link_resolver.seed_pages([f"{A}/more"], 0.0), stage.loop.time())
        stage.passes(600.0)


def test_a_single_address_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, rules=RULES)
    stage.wires[0].ends("connect")
    stage.passes(61.0)
    assert stage.wires[1].address == "127.0.0.1"


def test_the_number_of_lookups_at_once_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    script = ScriptedResolver()
    seeds = [f"http://s{number}.test/" for number in range(3 * AT_ONCE)]
    stage = Stage(monkeypatch, seeds, resolver=script)
    stage.passes(0.5 * 3 + 0.1)
    assert len(script.lookups) == len(seeds) and script.most_under_way == AT_ONCE
    assert not stage.site_resolver._queue and not stage.site_resolver._tasks
