"""Pages that change: versions, what differs and what does not, conditional requests and births, also over real sockets."""

import re
from array import array
from dataclasses import replace
from email.utils import formatdate
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.testweb.changing import changes, changing_web
from tests.testweb.webs import SIZE, connect, numbered, one_answer, request, response_to
from trapline.errors import ConfigError
from trapline.refresh import drawn_trace, trace_of_pages
from trapline.testweb import (
    Behaviour,
    Mix,
    Request,
    ServedAnswer,
    ServedWeb,
    answer,
    build_web,
    changes_of,
    get,
    render,
    serve,
)

BEGAN = 1_000_000.25
PAGE = 1


def web_of(updates: dict[int, list[float]], validators: str = "honest", **about: object) -> ServedWeb:
    graph = numbered()
    own = changes(updates, graph.pages, **about)
    return build_web(graph, Behaviour(validators=validators), changes=own).at(80, began=BEGAN)


def at(
    web: ServedWeb, since_s: float, none_match: str = "", modified_since: str = "", page: int = PAGE
) -> ServedAnswer:
    request = Request("GET", web.paths[page], True, False, none_match, modified_since)
    return answer(web, web.site[page], request, now=BEGAN + since_s)


def field(made: ServedAnswer, name: str) -> str:
    found = re.search(rf"(?i)^{name}: (.*)\r$", made.head.decode(), re.MULTILINE)
    return found[1] if found else ""


def visible(body: bytes) -> str:
    """Text as a browser shows it, and links."""
    text = re.sub(r"<script.*?</script>|<!--.*?-->", "", body.decode(), flags=re.DOTALL)
    return re.sub(r"<(?!a )[^>]*>", "", text).strip()


# ---- versions


@given(st.lists(st.floats(0.0, 9.0), max_size=8).map(sorted), st.floats(0.0, 35.0))
def test_a_version_counts_the_updates_of_all_rounds(moments: list[float], now_s: float) -> None:
    one = changes({0: moments}, 1, round_s=10.0)
    every = [number * 10.0 + at_s for number in range(4) for at_s in moments]
    rounds = int(now_s // 10.0)
    assert one.version(0, now_s) == rounds * len(moments) + sum(at_s <= now_s % 10.0 for at_s in moments)
    assert list(one.between(0, 0.0, 34.0)) == pytest.approx([at_s for at_s in every if 0.0 < at_s <= 34.0])
    assert one.updated_s(0, now_s) == pytest.approx(max([at_s for at_s in every if at_s <= now_s], default=0.0))


def test_a_trace_is_distributed_over_all_pages_and_sped_up() -> None:
    graph = numbered(sites=5, pages_per_site=20)
    trace = trace_of_pages("hand", [np.array([0.0, 30.0]), np.array([100.0])], ["a", "b"])
    sampled = changes_of(graph, trace, speed=10.0)
    counts = np.diff(sampled.offsets)
    assert sorted(counts.tolist()) == [1] * 50 + [2] * 50 and 10.0 < sampled.round_s < 10.001
    own = {tuple(sampled.at_s[begin:end]) for begin, end in pairwise(sampled.offsets)}
    assert len(own) > 90  # a history that is used again is rotated
    gaps = [second - first for first, second in (one for one in own if len(one) == 2)]
    assert all(min(abs(gap - 3.0), abs(gap - 7.0)) < 1e-9 for gap in gaps)


def test_the_seed_determines_which_page_changes_when() -> None:
    graph, trace = numbered(), drawn_trace("bursty", 12, 200, 1.0, seed=0)
    first, again, other = (changes_of(graph, trace, seed=seed) for seed in (1, 1, 2))
    assert first.offsets == again.offsets and first.at_s == again.at_s and first.offsets != other.offsets


def test_a_speed_of_0_is_refused() -> None:
    with pytest.raises(ConfigError, match="speed"):
        changes_of(numbered(), drawn_trace("poisson", 12, 10, 1.0, seed=0), speed=0.0)


# ---- content


def test_content_differs_by_version_only() -> None:
    web = web_of({PAGE: [5.0, 6.0]})
    seen = [at(web, since_s) for since_s in (0.0, 4.9, 5.0, 5.9, 6.0, 99.0)]
    assert [made.version for made in seen] == [0, 0, 1, 1, 2, 2]
    assert len({visible(made.body) for made in seen}) == 3 == len({made.body for made in seen})
    assert {len(made.body) for made in seen} == {SIZE}


def test_noise_always_differs_and_is_never_visible() -> None:
    web = web_of({PAGE: [5.0]}, noise=True)
    seen = [at(web, since_s).body for since_s in (1.0, 2.0, 3.0, 5.0)]
    assert len(set(seen)) == 4 and {len(body) for body in seen} == {SIZE}
    assert len({visible(body) for body in seen[:3]}) == 1 and visible(seen[3]) != visible(seen[0])
    assert at(web, 1.0).body == seen[0]  # no generator behind it


def test_a_web_without_changes_stays_the_same() -> None:
    web = build_web(numbered())
    made = answer(web, 0, get("/"), now=123.0)
    assert made.body == render(web, 0) and made.version == 0 and web.constant
    assert made.head.decode().split("\r\n")[1:] == [
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {SIZE}",
        "",
    ]


# ---- conditional requests


def test_a_copy_is_confirmed_until_the_page_changes() -> None:
    web = web_of({PAGE: [5.0]})
    first = at(web, 1.0)
    tag, date = field(first, "ETag"), field(first, "Last-Modified")
    assert tag.startswith('"') and date == formatdate(1_000_000, usegmt=True)
    for given_fields in ({"none_match": tag}, {"modified_since": date}, {"none_match": f'"x", W/{tag}'}):
        confirmed = at(web, 4.0, **given_fields)
        assert (confirmed.status, confirmed.body, confirmed.version) == (304, b"", 0)
        assert field(confirmed, "ETag") == tag and not field(confirmed, "Content-Length")
        assert at(web, 5.0, **given_fields).status == 200
    assert at(web, 4.0, none_match="*").status == 304


def test_etags_take_precedence_over_dates() -> None:
    web = web_of({})
    tag, date = field(at(web, 1.0), "ETag"), field(at(web, 1.0), "Last-Modified")
    assert at(web, 1.0, '"another"', date).status == 200
    assert at(web, 1.0, tag, "Thu, 01 Jan 1970 00:00:00 GMT").status == 304
    assert at(web, 1.0, modified_since="yesterday").status == 200


def test_no_two_versions_share_a_date() -> None:
    """Two updates in one second, and a client that asked between them."""
    web = web_of({PAGE: [5.0, 5.5]}, "date")
    dates = {since_s: field(at(web, since_s), "Last-Modified") for since_s in (4.0, 5.1, 5.6, 5.8)}
    assert dates[5.1] == dates[5.6] == "" and dates[5.8] and dates[4.0] and not field(at(web, 4.0), "ETag")
    assert at(web, 5.1, modified_since=dates[4.0]).status == 200
    assert at(web, 9.0, modified_since=dates[5.8]).status == 304
    assert at(web, 9.0, modified_since=formatdate(BEGAN + 9.0, usegmt=True)).status == 200


def test_sites_may_send_fewer_validators_or_none() -> None:
    weak, fickle, none = (web_of({}, kind) for kind in ("weak", "fickle", "none"))
    tag = field(at(weak, 1.0), "ETag")
    assert tag.startswith('W/"') and not field(at(weak, 1.0), "Last-Modified")
    assert at(weak, 2.0, tag).status == 304 and at(weak, 2.0, tag.removeprefix("W/")).status == 304
    assert at(fickle, 2.0, field(at(fickle, 1.0), "ETag")).status == 200
    assert not field(at(none, 1.0), "ETag") and at(none, 1.0, "", "Thu, 01 Jan 1970 00:00:00 GMT").status == 200


def test_with_noise_an_etag_is_weak() -> None:
    assert field(at(web_of({}, noise=True), 1.0), "ETag").startswith("W/")


def test_validators_are_chosen_per_site() -> None:
    web = build_web(numbered(200, 1), Mix(validators=(("weak", 0.5), ("date", 0.25))))
    kinds = [behaviour.validators for behaviour in web.behaviours]
    assert 70 < kinds.count("weak") < 130 and 25 < kinds.count("date") < 75 and kinds.count("none") > 25
    with pytest.raises(ConfigError, match="did you mean 'fickle'"):
        Behaviour(validators="fickel")


# ---- births


def test_a_page_is_born_at_an_update_of_a_page_that_links_to_it() -> None:
    graph = numbered(4, 50)
    trace = drawn_trace("poisson", graph.pages, 20 * graph.pages, 1.0, seed=2)
    web = build_web(graph, changes=changes_of(graph, trace, grows=0.5, seed=3)).at(80, began=BEGAN)
    assert web.changes is not None and web.changes.grows
    later = [page for page in range(web.pages) if web.changes.born_s[page] > 0]
    assert 50 < len(later) < 110 and not set(later) & set(web.home)
    for page in later:
        born = BEGAN + web.changes.born_s[page]
        links_to = [source for source in (page - 1, page - 2) if web.exists(source, born - 1e-3)]
        assert not web.exists(page, born - 1e-3) and web.exists(page, born + 1e-3)
        assert not any(page in web.links(source, born - 1e-3) for source in links_to)
        assert any(page in web.links(source, born + 1e-3) for source in links_to)
        assert answer(web, web.site[page], get(web.paths[page]), now=born - 1e-3).status == 404


def test_links_change_only_with_their_page() -> None:
    born = array("d", [0.0] * 12)
    born[2], born[3] = 4.0, 6.0  # PAGE links to both, and changes at 5 and at 9
    web = web_of({PAGE: [5.0, 9.0]}, born_s=born)
    assert [web.links(PAGE, BEGAN + since_s) for since_s in (4.5, 5.0, 8.9, 9.0)] == [[], [2], [2], [2, 3]]


# ---- real sockets


def test_changes_of_a_served_page_are_in_the_log() -> None:
    web = changing_web(gap_s=0.05, behaving=Behaviour(validators="honest"), noise=True)
    with serve(web) as server:
        web = server.web
        with connect(web, 0) as own:
            tags = []
            while len(set(tags)) < 3:
                own.sendall(request(web, PAGE))
                head, _, _ = one_answer(own)
                tags.append(re.search(rb"ETag: (\S+)", head)[1])  # type: ignore[index]
        log = server.log()
    assert log.page.tolist() == [PAGE] * len(tags) and set(log.status.tolist()) == {200}
    moments = log.arrival_s + log.wall - web.began
    assert web.changes is not None
    assert log.version.tolist() == [web.changes.version(PAGE, at_s) for at_s in moments.tolist()]
    assert [f'W/"{PAGE:x}-{version:x}"'.encode() for version in log.version.tolist()] == tags


def test_a_304_answer_is_complete_and_logged() -> None:
    web = build_web(numbered(), Behaviour(validators="honest"))
    with serve(web) as server:
        tag = f'"{PAGE:x}-0"'
        confirmed = response_to(server.web, PAGE, f"If-None-Match: {tag}", "Connection: close")
        assert confirmed.startswith(b"HTTP/1.1 304 Not Modified\r\n") and confirmed.endswith(b"\r\n\r\n")
        assert response_to(server.web, PAGE, 'If-None-Match: "0"', "Connection: close").startswith(b"HTTP/1.1 200 ")
        response_to(server.web, PAGE, "Connection: close", version="1.0")
        log = server.log()
    assert (log.status.tolist(), log.version.tolist()) == ([304, 200, 200], [0, 0, 0])


def test_an_incomplete_answer_has_no_version_in_the_log() -> None:
    faults = tuple((name, 1 / 3) for name in ("reset", "error", "gzip"))
    web = replace(changing_web(1e3, Behaviour(faults=faults), pages_per_site=30), began=BEGAN)
    made = {web.fault(page): answer(web, web.site[page], get(web.paths[page]), now=BEGAN) for page in range(web.pages)}
    assert {name: one.version for name, one in made.items()} == {"reset": -1, "error": -1, "gzip": 0}
    head = Request("HEAD", "/", True, False)
    assert answer(web_of({}), 0, head, now=BEGAN).version == -1
