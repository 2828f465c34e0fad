"""The pages in a real browser, against the stand-in server: every view, by pointer and keyboard, in both colour schemes and
both widths, with friendly and hostile text."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.dashboard.browser import LOW_CONTRAST, NAMELESS, OVERFLOW, browsing, chromium
from tests.dashboard.stand_in import StandIn, stand_in
from tests.effort import slow
from tests.hostile_text import HOSTILE

__all__ = ["chromium"]

# Each view by its address, with an element that it has only when its data are shown.
VIEWS = {
    "overview": ("overview", ".live-chart .line"),
    "speed": ("speed", ".stack rect:not(.track)"),
    "sites": ("sites", ".sites tbody tr"),
    "site": ("sites/5", ".rows tbody tr"),
    "explain": ("explain?url=https%3A%2F%2Fgallery.example%2F", ".explanation dd"),
    "quality": ("quality", ".live-chart .line"),
    "refresh": ("refresh", ".rows tbody tr"),
    "partitions": ("partitions", ".partition-bars rect:not(.track)"),
    "events": ("events", ".events li"),
    "actions": ("actions", ".cards button"),
}
HARM = f"{HOSTILE}<img src=x onerror=alert(1)>\"'><svg onload=alert(1)>"


@pytest.fixture
def world() -> Iterator[StandIn]:
    with stand_in() as world:
        yield world


def opened(page: Any, world: StandIn, address: str, shown: str) -> None:
    page.goto("about:blank")
    page.goto(f"{world.url}#/{address}")
    page.wait_for_selector(f"main {shown}", state="attached")


def text(page: Any, selector: str) -> str:
    return page.locator(selector).first.inner_text()


def test_the_overview_follows_the_crawl_and_shows_names_as_text(world: StandIn, chromium: Any) -> None:
    world.crawls, world.hostile = world.crawls[:1], HARM
    with browsing(chromium) as page:
        opened(page, world, "overview", ".live-chart .line")
        before = text(page, ".steady li:nth-child(2) b")
        page.wait_for_function(
            "(before) => document.querySelector('.steady li:nth-child(2) b').innerText !== before", arg=before
        )
        assert "<script>" in text(page, ".sentence") and "\\u202e" in text(page, ".sentence")
        assert not page.locator("#chooser").is_visible()


@slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_every_view_is_legible_named_and_fits(world: StandIn, chromium: Any, width: int, scheme: str) -> None:
    with browsing(chromium, width, scheme) as page:
        for address, shown in VIEWS.values():
            opened(page, world, address, shown)
            assert page.evaluate(LOW_CONTRAST) == []
            assert page.evaluate(NAMELESS) == []
            assert page.evaluate(OVERFLOW) == 0


@slow
@pytest.mark.parametrize("name", VIEWS)
def test_hostile_text_executes_nothing(world: StandIn, chromium: Any, name: str) -> None:
    world.hostile = HARM
    address, shown = VIEWS[name]
    with browsing(chromium, 390 if name == "sites" else 1400) as page:
        opened(page, world, address, shown)
        page.wait_for_timeout(300)
        assert page.evaluate("document.querySelectorAll('main script, main img, svg[onload]').length") == 0
        assert page.evaluate(OVERFLOW) == 0


@slow
def test_numbers_change_without_moving_anything(world: StandIn, chromium: Any) -> None:
    watch = """() => { window.moved = 0; new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.moved += entry.value; }).observe({ type: "layout-shift" }); }"""
    with browsing(chromium) as page:
        opened(page, world, "overview", ".live-chart .line")
        page.wait_for_timeout(500)
        page.evaluate(watch)
        page.wait_for_timeout(2500)
        assert page.evaluate("window.moved") == 0


# ---- Sites.


def first_site(page: Any, name: str) -> None:
    page.wait_for_function("(name) => document.querySelector('.sites tbody a')?.innerText.includes(name)", arg=name)


@slow
def test_sites_are_sorted_by_clicks_and_by_the_keyboard(world: StandIn, chromium: Any) -> None:
    by_name = sorted(row["origin"] for row in world.sites)
    with browsing(chromium) as page:
        opened(page, world, "sites", ".sites tbody tr")
        assert page.get_attribute("th[aria-sort]", "aria-sort") == "descending"
        page.click("thead button:text-is('Site')")
        first_site(page, by_name[0])
        assert page.get_attribute("th[aria-sort]", "aria-sort") == "ascending"
        page.focus("thead button:text-is('Site')")
        page.keyboard.press("Enter")
        first_site(page, by_name[-1])
        assert page.locator("th[aria-sort]").count() == 1


@slow
def test_sites_are_searched_filtered_and_paged_and_the_address_keeps_it(world: StandIn, chromium: Any) -> None:
    wanted = [row for row in world.sites if "museum" in row["origin"]]
    with browsing(chromium) as page:
        opened(page, world, "sites", ".sites tbody tr")
        page.click("button:text-is('Next')")
        page.wait_for_selector(".where:text-is('101 to 200 of 240')")
        page.fill("[type=search]", "museum")
        page.wait_for_selector(f"text={len(wanted)} of 240 sites.")
        assert page.locator(".sites tbody tr").count() == len(wanted)
        page.reload()
        page.wait_for_selector(f"text={len(wanted)} of 240 sites.")
        assert page.input_value("[type=search]") == "museum"
        page.fill("[type=search]", "no such site")
        page.wait_for_selector("text=No site matches.")


@slow
def test_a_narrow_page_sorts_by_a_list(world: StandIn, chromium: Any) -> None:
    with browsing(chromium, 390) as page:
        opened(page, world, "sites", ".sites tbody tr")
        page.select_option("label:has-text('Sort by') select", label="Fetched")
        first_site(page, max(world.sites, key=lambda row: row["fetched"])["origin"])


# ---- Explain and events.


@slow
def test_a_url_is_explained_after_its_job_is_done(world: StandIn, chromium: Any) -> None:
    with browsing(chromium, may_fail=True) as page:
        opened(page, world, "explain", "[name=url]")
        page.fill("[name=url]", "https://gallery.example/")
        page.keyboard.press("Enter")
        page.wait_for_selector("dt:has-text('discovered')")
        assert "url=https" in page.url
        page.fill("[name=url]", "https://unknown.example/")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=The crawl does not know this URL.")


@slow
def test_events_are_filtered_and_new_ones_appear(world: StandIn, chromium: Any) -> None:
    with browsing(chromium) as page:
        opened(page, world, "events", ".events li")
        page.select_option("label:has-text('Level') select", "error")
        page.wait_for_function("() => document.querySelectorAll('.events li:not([data-level=error])').length === 0")
        count = page.locator(".events li").count()
        fresh = [
            {"at": 1794999099.0, "level": level, "event": "defect", "text": f"{level} {HARM}"}
            for level in ("error", "info")
        ]
        world.fresh_events = fresh
        page.wait_for_function("(count) => document.querySelectorAll('.events li').length > count", arg=count)
        assert page.locator(".events li").count() == count + 1
        assert "<script>" in text(page, ".events li .said")


# ---- Actions.


@slow
def test_every_action_is_confirmed_and_sent_once(world: StandIn, chromium: Any) -> None:
    with browsing(chromium) as page:
        opened(page, world, "actions", ".cards button")
        page.wait_for_selector(".cards button:text-is('Block'):enabled")
        page.click(".cards button:text-is('Block')")
        page.keyboard.press("Escape")
        assert not page.locator("dialog").is_visible() and world.actions == []
        for button, fields in [
            ("Block", {"site": "*.example.org"}),
            ("Unblock", {"site": "example.org"}),
            ("Change the delay", {"site": "example.org", "delay": "2 min"}),
            ("Add seeds", {"urls": "https://one.example/\nhttps://two.example/"}),
            ("Stop", {}),
        ]:
            page.click(f".cards button:text-is('{button}')")
            for name, value in fields.items():
                page.fill(f"dialog [name={name}]", value)
            page.click("#dialog-confirm")
            page.wait_for_selector("dialog", state="hidden")
        page.wait_for_selector("#answer:text-is('Done: stop.')")
    assert world.actions == [
        {"action": "block", "site": "*.example.org", "confirm": True},
        {"action": "unblock", "site": "example.org", "confirm": True},
        {"action": "delay", "site": "example.org", "delay_s": 120, "confirm": True},
        {"action": "add_seeds", "urls": ["https://one.example/", "https://two.example/"], "confirm": True},
        {"action": "stop", "confirm": True},
    ]


@slow
def test_a_refused_or_wrong_action_is_explained_in_the_dialog(world: StandIn, chromium: Any) -> None:
    world.refusal = f"The crawl refused. {HARM}"
    with browsing(chromium, may_fail=True) as page:
        opened(page, world, "actions", ".cards button:enabled")
        page.click(".cards button:text-is('Change the delay')")
        page.fill("dialog [name=site]", "example.org")
        page.fill("dialog [name=delay]", "soon")
        page.keyboard.press("Enter")
        page.wait_for_selector("#dialog-error:has-text('number with a unit')")
        page.fill("dialog [name=delay]", "5 s")
        page.keyboard.press("Enter")
        page.wait_for_selector("#dialog-error:has-text('The crawl refused.')")
        page.click("#dialog-cancel")
        assert page.evaluate("document.activeElement.innerText") == "Change the delay"


@slow
def test_pause_and_continue_by_the_keyboard(world: StandIn, chromium: Any) -> None:
    with browsing(chromium) as page:
        opened(page, world, "overview", ".live-chart .line")
        for button, state in (("Pause", "paused"), ("Continue", "running")):
            page.focus(f"#pause:text-is('{button}')")
            page.keyboard.press("Enter")
            page.wait_for_selector("dialog[open]")
            assert page.evaluate("document.activeElement.id") == "dialog-cancel"
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")
            page.wait_for_selector(f"#state:text-is('{state}')")
    assert [action["action"] for action in world.actions] == ["pause", "continue"]


@slow
@pytest.mark.parametrize(
    ("can_act", "state", "why"), [(False, "running", "--read-only"), (True, "ended", "not running")]
)
def test_no_action_without_permission_or_a_running_crawl(
    world: StandIn, chromium: Any, can_act: bool, state: str, why: str
) -> None:
    world.crawls[0]["can_act"], world.overview["state"] = can_act, state
    with browsing(chromium) as page:
        opened(page, world, "actions", f".nothing:has-text('{why}')")
        assert page.locator(".cards button:enabled").count() == 0
        assert not page.locator("#pause").is_visible() and not page.locator("#stop").is_visible()


# ---- Keyboard and screen reader.


@slow
def test_the_keyboard_reaches_everything(world: StandIn, chromium: Any) -> None:
    with browsing(chromium) as page:
        opened(page, world, "overview", ".live-chart .line")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.focus("nav a:text-is('Sites')")
        page.keyboard.press("Enter")
        page.wait_for_selector("main h2:text-is('Sites')")
        assert page.evaluate("document.activeElement.innerText") == "Sites"
        assert page.get_attribute("nav a[aria-current=page]", "href").endswith("sites")


@slow
def test_a_chart_is_read_with_the_arrow_keys_and_as_a_table(world: StandIn, chromium: Any) -> None:
    with browsing(chromium) as page:
        opened(page, world, "overview", ".live-chart .line")
        reader = "figure:has-text('Frontier') [role=slider]"
        page.focus(reader)
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        said = page.get_attribute(reader, "aria-valuetext")
        assert said.startswith("after ") and "waiting" in said and "known" in said
        assert page.locator("#reading").is_visible()
        page.keyboard.press("Escape")
        assert not page.locator("#reading").is_visible()
        page.click("figure:has-text('Frontier') summary")
        page.wait_for_selector("figure:has-text('Frontier') tbody tr:nth-child(11)")


# ---- The connection, the token, several crawls, empty crawls.


@slow
def test_a_lost_connection_is_shown_and_comes_back(world: StandIn, chromium: Any) -> None:
    with browsing(chromium, may_fail=True) as page:
        opened(page, world, "overview", ".live-chart .line")
        world.is_silent = True
        page.wait_for_selector("#lost:has-text('lost since')")
        world.is_silent = False
        page.wait_for_selector("#lost", state="hidden")
        before = text(page, ".steady li:nth-child(2) b")
        page.wait_for_function(
            "(before) => document.querySelector('.steady li:nth-child(2) b').innerText !== before", arg=before
        )


@slow
def test_a_token_is_taken_from_the_address_or_asked_for(world: StandIn, chromium: Any) -> None:
    world.token = "a secret&1"
    with browsing(chromium, may_fail=True) as page:
        page.goto(f"{world.url}#token=a%20secret%261")
        page.wait_for_selector(".steady")
        assert "secret" not in page.url
    with browsing(chromium, may_fail=True) as page:
        page.goto(world.url)
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=The token is wrong.")
        page.fill("#token", world.token)
        page.keyboard.press("Enter")
        page.wait_for_selector(".steady")


@slow
def test_another_crawl_is_chosen(world: StandIn, chromium: Any) -> None:
    with browsing(chromium) as page:
        opened(page, world, "0/sites", ".sites tbody tr")
        page.select_option("#crawls", "1")
        page.wait_for_selector("#crawl-name:text-is('first')")
        assert page.url.endswith("#/1/overview")
        names = page.locator("nav a").all_inner_texts()
        assert "Refresh" not in names and "Partitions" not in names
        page.go_back()
        page.wait_for_selector("#crawl-name:text-is('museums-2026')")


@slow
@pytest.mark.parametrize(
    ("factor", "gain"), [(1.5, "1.5"), (2.0, "2"), (20.0, "20"), (150.4, "150"), (5000.0, "over 1,000")]
)
def test_a_suggestion_says_how_much_it_helps(world: StandIn, chromium: Any, factor: float, gain: str) -> None:
    world.overview["speed"]["help"] = [{"text": "--connections 200", "factor": factor}]
    with browsing(chromium) as page:
        opened(page, world, "speed", f".help b:text-is('{gain} times as fast')")


@slow
def test_an_ended_crawl_shows_no_connections(world: StandIn, chromium: Any) -> None:
    world.overview["state"], world.overview["speed"]["shares"] = "ended", {}
    with browsing(chromium) as page:
        opened(page, world, "speed", ".help li")
        assert not page.is_visible(".stack") and not page.is_visible("text=What the connections do")


@slow
def test_a_crawl_without_pages_says_so(world: StandIn, chromium: Any) -> None:
    world.history = {name: [] for name in world.history}
    world.overview["totals"] = dict.fromkeys(world.overview["totals"], 0)
    world.overview |= {"state": "new", "goals": [], "errors": {}, "abandoned": {}, "rejected": {}, "busiest": []}
    world.overview["speed"] = {"limit": "", "sentence": "", "shares": {}, "help": []}
    world.sites, world.events = [], []
    with browsing(chromium) as page:
        opened(page, world, "overview", ".nothing:has-text('has not fetched a page yet')")
        page.wait_for_selector(".nothing:visible")
        opened(page, world, "speed", ".nothing:has-text('No connections')")
        opened(page, world, "sites", "[role=status]:has-text('The crawl knows no site yet.')")
        opened(page, world, "events", ".nothing:has-text('No event')")
        opened(page, world, "nowhere", ".nothing:has-text('leads nowhere')")
