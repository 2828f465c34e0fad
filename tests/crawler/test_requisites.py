"""Requisites of pages, in virtual time: their turn, the delays around them, their limits, and what they do not count towards."""

from collections import Counter

import pytest

from tests.crawler.stage import A, B, Stage, Wire
from trapline.crawler.engine.options import Goals
from trapline.crawler.engine.records import VISITS, PageRequisite
from trapline.crawler.engine.stop_reasons import DRAINED, MAX_BYTES, MAX_PAGES
from trapline.crawler.requisites import requisite_queue
from trapline.crawler.requisites.page_requisites import MOST_LEVELS, PageRequisites
from trapline.crawler.visits.extra_queue import MOST_REQUESTS, WAITING
from trapline.frontier import Rules
from trapline.frontier.layout import GONE
from trapline.frontier.layout import WAITING as WAITING_PAGE

CSS = {"Content-Type": "text/css"}
PNG = {"Content-Type": "image/png"}


def requisites_of(stage: Stage) -> PageRequisites:
    assert stage.requisites is not None
    return stage.requisites


def states(stage: Stage) -> dict[str, str]:
    """State of each requisite, by path, as the store has it."""
    stage.outbox.flush()
    rows: list[PageRequisite] = [one for batch in stage.batches for one in batch.requisites]
    return {stage.link_resolver.urls([one.page])[0].partition(".test")[2]: one.state for one in rows}


def answers(stage: Stage, site: dict[str, tuple[int, dict[str, str], bytes]], most: int = 60) -> list[str]:
    """Answer requests on all connections until the crawl ends or nothing is requested. Return the requested URLs in order."""
    requested: list[str] = []
    begun: set[Wire] = set()
    for _ in range(most):
        for wire in list(stage.wires):
            if wire.is_over:
                continue
            if wire not in begun:
                begun.add(wire)
                wire.opens()
            while len(wire.sent) > wire.responses_received:
                target = wire.targets[wire.responses_received]
                if target != "/robots.txt":
                    requested.append(f"{wire.address}{target}")
                wire.answers(*site.get(f"{wire.address}{target}", site.get(target, (404, {}, b""))))
        if stage.over:
            break
        stage.passes(1.0)
    return requested


def test_a_page_brings_its_files_from_any_host_and_stylesheets_bring_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True)
    page = f"<link rel=stylesheet href=/a.css><img src={B}/b.png><a href=/next>".encode()
    site = {
        "127.0.0.1/": (200, {}, page),
        "/next": (200, {}, page),
        "/a.css": (200, CSS, b"@import 'c.css'; a{b:url(img/d.png)}"),
        "/c.css": (200, CSS, b"a{b:url(e.woff)}"),
        "/b.png": (302, {"Location": "/moved.png"}, b""),
        **dict.fromkeys(("/img/d.png", "/moved.png", "/e.woff"), (200, PNG, b"x")),
    }
    requested = answers(stage, site)
    assert stage.crawler.stopped_by == DRAINED
    assert Counter(requested) == Counter(
        ["127.0.0.1" + path for path in ("/", "/next", "/a.css", "/c.css", "/img/d.png", "/e.woff")]
        + ["127.0.0.2/b.png", "127.0.0.2/moved.png"]
    ), "each once, although two pages name them"
    progress = stage.crawler.progress(1.0)
    assert (stage.crawler.tally.fetched, progress.known, stage.crawler.tally.errors) == (2, 2, Counter())
    assert set(states(stage).values()) == {"fetched", "with links"} and requisites_of(stage).queue.fetched == 6


def test_files_that_links_lead_to_too_bring_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are fetched as pages, and are still stylesheets and images of pages."""
    stage = Stage(monkeypatch, scope="host", requisites=True)
    page = b"<link rel=stylesheet href=/a.css><a href=/a.css>source</a><a href=/logo><img src=/logo></a>"
    site = {
        "127.0.0.1/": (200, {}, page),
        "/a.css": (200, CSS, b"@import 'c.css'; a{b:url(d.png)}"),
        "/c.css": (200, CSS, b"@import 'a.css'; a{b:url(e.woff)}"),
        "/logo": (302, {"Location": f"{B}/logo.png"}, b""),
        **dict.fromkeys(("/d.png", "/e.woff", "/logo.png"), (200, PNG, b"x")),
    }
    requested = answers(stage, site)
    assert Counter(requested) == Counter(
        ["127.0.0.1" + path for path in ("/", "/a.css", "/c.css", "/d.png", "/e.woff", "/logo")]
        + ["127.0.0.2/logo.png"]
    )
    assert stage.crawler.tally.fetched == 2 and requisites_of(stage).queue.fetched == 4


def test_requisites_keep_the_delay_the_pause_and_half_of_a_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = [f"{A}/{n}" for n in range(8)]
    stage = Stage(monkeypatch, seeds, scope="host", requisites=True, rules=Rules(delay_s=15.0, per_connection=6))
    wire = stage.opens()
    wire.answers(200, {}, "".join(f"<img src=/i{n}.png>" for n in range(9)).encode())
    for number in range(6):
        assert len(wire.sent) == 2 + number
        stage.passes(1.0)
        if len(wire.sent) > wire.responses_received:
            wire.answers(200, PNG, b"x")
    assert [target[:2] == "/i" for target in wire.targets[1:]] == [False] + [True] * 3 + [False] * 2
    stage.passes(13.0)
    assert len(stage.wires) == 1
    stage.passes(2.0)
    assert len(stage.wires) == 2, "the delay between two visits applies"


def test_robots_txt_counts_for_requisites(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True)
    wire = stage.opens((200, {}, b"User-agent: *\nDisallow: /no"))
    wire.answers(200, {}, b"<img src=/no.png><img src=/yes.png>")
    stage.passes(1.0)
    wire.answers(200, PNG, b"x")
    stage.passes(1.0)
    assert wire.targets[1:] == ["/", "/yes.png"] and stage.over
    assert states(stage) == {"/no.png": "forbidden", "/yes.png": "fetched"}


def test_a_limit_on_pages_lets_their_requisites_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that a link leads to: they wait as pages that will not be fetched."""
    stage = Stage(monkeypatch, scope="host", requisites=True, goals=Goals(pages=1))
    page = b"<img src=/a.png><a href=/big.png><img src=/big.png></a><a href=/next>"
    site = {"/": (200, {}, page), "/a.png": (200, PNG, b"x"), "/big.png": (200, PNG, b"x")}
    assert answers(stage, site) == ["127.0.0.1/", "127.0.0.1/a.png", "127.0.0.1/big.png"]
    assert (stage.crawler.stopped_by, stage.crawler.tally.fetched) == (MAX_PAGES, 1)


def test_a_limit_on_bytes_holds_for_requisites_after_the_limit_on_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    page = b"<img src=/0.png><img src=/1.png><img src=/2.png><img src=/3.png>"
    stage = Stage(monkeypatch, scope="host", requisites=True, goals=Goals(pages=1, bytes=len(page) + 150))
    site = {"/": (200, {}, page), **{f"/{number}.png": (200, PNG, b"x" * 100) for number in range(4)}}
    assert answers(stage, site) == ["127.0.0.1/", "127.0.0.1/0.png", "127.0.0.1/1.png"]
    assert (stage.crawler.stopped_by, stage.crawler.tally.fetched) == (MAX_BYTES, 1)


def test_a_limit_on_pages_does_not_wait_for_an_abandoned_site(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True, goals=Goals(pages=1))
    wire = stage.opens()
    wire.answers(200, {}, b"<img src=http://unknown.test/a.png>")
    for _ in range(100):
        stage.passes(10.0)
    assert stage.over and states(stage) == {"/a.png": "failed"}


def test_requisites_of_a_site_that_was_abandoned_before_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = [f"{A}/", f"{A}/2"]
    stage = Stage(monkeypatch, seeds, scope="host", requisites=True, goals=Goals(pages=2), connections=1)
    wire = stage.opens()
    wire.answers(200, {}, f"<img src={B}/a.png>".encode())
    stage.crawler.abandon(stage.site(B), VISITS, "3 failed visits in a row")
    stage.passes(1.0)
    wire.answers(200, {}, f"<img src={B}/b.png>".encode())
    stage.passes(10.0)
    assert (stage.over, stage.crawler.stopped_by) == (True, MAX_PAGES)
    assert states(stage) == {"/a.png": "failed", "/b.png": "failed"} and len(requisites_of(stage).queue) == 0
    waiting = PageRequisite(stage.link_resolver.find([f"{B}/b.png"])[0], "image", 0, 0, 0, WAITING)
    again = PageRequisites(stage.frontier, stage.link_resolver, stage.outbox, 1 << 20)
    again.queue.restore([waiting])
    assert len(again.queue) == 0, "neither after a resume"


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_dead_host_of_requisites_is_tried_twice(monkeypatch: pytest.MonkeyPatch, comes_back: bool) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True)
    stage.opens().answers(200, {}, f"<img src={B}/a.png>".encode())
    stage.passes(0.0)
    stage.wires[-1].ends("connect")
    stage.passes(59.0)
    assert len(stage.wires) == 2 and not stage.over, "the back-off is a minute"
    stage.passes(2.0)
    if comes_back:
        stage.opens().answers(200, PNG, b"x")
    else:
        stage.wires[-1].ends("connect")
    stage.passes(1.0)
    assert stage.over and len(stage.wires) == 3
    assert states(stage) == {"/a.png": "fetched" if comes_back else "failed"}
    assert not stage.crawler.tally.abandoned_sites and stage.crawler.progress(1.0).sites == 1, "of sites with pages"


def test_a_url_is_fetched_as_a_page_or_as_a_requisite_but_not_as_both(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True)
    site = {
        "/": (200, {}, b"<img src=/first.png><img src=/page.html><a href=/linked.png><img src=/linked.png><a href=/2>"),
        "/2": (200, {}, b"<a href=/first.png><a href=/page.html>"),
        "/first.png": (200, PNG, b"x"),
        "/linked.png": (200, PNG, b"x"),
        "/page.html": (200, {}, b"<a href=/3>"),
        "/3": (200, {}, b""),
    }
    requested = Counter(target.partition("/")[2] for target in answers(stage, site))
    assert requested.pop("page.html") == 2, "HTML is fetched as a page too: otherwise its links would be lost"
    assert requested == Counter(["", "2", "3", "first.png", "linked.png"])
    assert states(stage)["/linked.png"] == "page" and stage.crawler.tally.fetched == 5


def test_a_link_to_a_requisite_out_of_scope_makes_it_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True)
    named = f"<img src={B}/a.png><img src={B}/b><a href=/2>".encode()
    linked = f"<a href={B}/a.png><a href={B}/b><a href={B}/c>".encode()
    site = {
        "127.0.0.1/": (200, {}, named),
        "/2": (200, {}, linked),
        "/a.png": (200, PNG, b"x"),
        "/b": (200, {}, b"<a href=/d>"),
    }
    requested = Counter(answers(stage, site))
    assert requested == Counter(["127.0.0.1/", "127.0.0.1/2", "127.0.0.2/a.png", "127.0.0.2/b"])
    assert states(stage) == {"/a.png": "fetched", "/b": "with links"} and stage.crawler.tally.fetched == 2
    assert (
        stage.link_resolver.arrived([f"{B}/b", f"{B}/c"], 0.0) == [stage.link_resolver.arrived([f"{B}/c"], 0.0)[0]] * 2
    )


def test_a_requisite_that_a_link_makes_a_page_is_a_page_in_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True)
    site = {
        "/": (200, {}, b"<img src=/html><img src=/moved><img src=/missing><a href=/2>"),
        "/2": (200, {}, b"<a href=/html><a href=/moved><a href=/missing>"),
        "/html": (200, {}, b""),
        "/moved": (302, {"Location": "/html"}, b""),
    }
    answers(stage, site)
    assert states(stage) == {"/html": "page", "/moved": "page", "/missing": "page"}
    assert (stage.crawler.tally.fetched, stage.crawler.progress(1.0).known) == (3, 5)
    stored = [one for batch in stage.batches for one in batch.requisites]
    again = PageRequisites(stage.frontier, stage.link_resolver, stage.outbox, 1 << 20)
    again.queue.restore([one._replace(state="with links") for one in stored if one.state == "page"])
    assert again.queue.fetched == 0, "a crawl that was killed before it noted this notes it when it is resumed"


def test_what_is_taken_over_at_the_limit_on_pages_keeps_its_role_and_is_no_page_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True, goals=Goals(pages=1))
    page = b"<a href=/a.css><link rel=stylesheet href=/a.css></a><a href=/b><img src=/b></a><a href=/next>"
    css = (200, {"Content-Type": "text/plain"}, b"a{b:url(c.png)}")
    requested = answers(stage, {"/": (200, {}, page), "/a.css": css, "/b": (200, {}, b"")})
    assert requested[1:] == ["127.0.0.1/a.css", "127.0.0.1/b", "127.0.0.1/c.png"], "a.css is read as a stylesheet"
    assert states(stage) == {"/a.css": "fetched", "/b": "page", "/c.png": "missing"}
    stored = {one.page: one for batch in stage.batches for one in batch.requisites}
    assert [(one.role, one.needed_by) for one in stored.values()][:2] == [("stylesheet", 0), ("image", 0)]
    again = PageRequisites(stage.frontier, stage.link_resolver, stage.outbox, 1 << 20)
    again.queue.restore(stored.values())
    assert [stage.life(path) for path in ("/a.css", "/b", "/next")] == [GONE, WAITING_PAGE, WAITING_PAGE]


def test_a_requisite_that_fails_is_requested_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True)
    site = {"/": (200, {}, b"<img src=/a.png><img src=/b.png>"), "/a.png": (503, {}, b"")}
    assert Counter(answers(stage, site))["127.0.0.1/a.png"] == MOST_REQUESTS
    assert states(stage) == {"/a.png": "failed", "/b.png": "missing"} and stage.over
    assert not stage.crawler.tally.errors and requisites_of(stage).queue.failed == 2


def test_a_chain_of_stylesheets_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True)
    chain = {f"/{n}.css": (200, CSS, f"@import '/{n + 1}.css'".encode()) for n in range(20)}
    requested = answers(stage, {"/": (200, {}, b"<style>@import '/0.css'</style>"), **chain})
    assert len(requested) == 1 + MOST_LEVELS + 1


def test_a_stylesheet_without_a_type_is_read_and_a_compressed_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    stage = Stage(monkeypatch, scope="host", requisites=True)
    site = {
        "/": (200, {}, b"<link rel=stylesheet href=/a><link rel=stylesheet href=/b>"),
        "/a": (200, {"Content-Type": "text/plain"}, b"a{b:url(/c)}"),
        "/b": (200, {**CSS, "Content-Encoding": "gzip"}, gzip.compress(b"a{b:url(/d)}")),
    }
    assert {"127.0.0.1/c", "127.0.0.1/d"} <= set(answers(stage, site))


def test_excluded_urls_blocked_ports_and_too_many_of_a_site_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True, rules=Rules(delay_s=15.0, pages_per_site=1))
    stage.opens().answers(
        200, {}, "".join(f"<img src=/{n}>" for n in range(30)).encode() + b"<img src=http://a.test:25/>"
    )
    assert len(states(stage)) == 10, "ten times --max-pages-per-site"


def test_what_waits_is_restored_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True)
    wire = stage.opens()
    wire.answers(200, {}, b"<img src=/a.png><img src=/b.png><img src=/c.png>")
    stage.passes(1.0)
    wire.answers(200, PNG, b"x")
    stage.outbox.flush()
    rows = {one.page: one for batch in stage.batches for one in batch.requisites}
    again = PageRequisites(stage.frontier, stage.link_resolver, stage.outbox, 1 << 20)
    again.queue.restore(rows.values())
    site = stage.site().id
    assert again.queue.has(site) and len(again.queue) == 2
    assert [again.queue.take(site)[1], again.queue.take(site)[1]] == [f"{A}/b.png", f"{A}/c.png"]
    assert not again.queue.has(site) and again.queue.fetched == 1
    assert {one.state for one in rows.values()} == {WAITING, requisite_queue.FETCHED}


def test_requisites_of_a_site_that_moves_to_another_partition_are_sent_there(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, scope="host", requisites=True)
    sent: list[tuple[str, str, int]] = []
    requisites = requisites_of(stage)
    monkeypatch.setattr(requisites, "_send", lambda *requisite: sent.append(requisite))
    stage.opens().answers(200, {}, f"<img src=/a.png><img src={B}/b.png>".encode())
    monkeypatch.setattr(stage.link_resolver, "is_ours", lambda url: not url.startswith(B))
    requisites.send_moved()
    assert sent == [(f"{B}/b.png", "image", 0)]
    assert states(stage) == {"/a.png": "waiting", "/b.png": "moved"} and len(requisites.queue) == 1


def test_pages_with_many_hosts_do_not_slow_the_search_for_a_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each search looks at the sites that may be visited, and not at all that are wanted."""
    stage = Stage(
        monkeypatch,
        scope="host",
        requisites=True,
        hosts={f"h{n}.test": (f"127.1.{n // 250}.{n % 250 + 1}",) for n in range(500)} | {"a.test": ("127.0.0.1",)},
    )
    stage.opens().answers(200, {}, "".join(f"<img src=http://h{n}.test/>" for n in range(500)).encode())
    stage.passes(0.0)
    looks = 0
    open_at = stage.frontier.open_at

    def counting(site: int) -> float:
        nonlocal looks
        looks += 1
        return open_at(site)

    monkeypatch.setattr(stage.frontier, "open_at", counting)
    for _ in range(100):
        stage.crawler.soon()
        stage.passes(0.0)
    assert looks < 1_000, "100 searches among 500 sites"
