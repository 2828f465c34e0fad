"""The answers with which the pages are tested (sample/) have the fields of real answers."""

from pathlib import Path
from typing import Any

import pytest

from tests.crawler.live_web import crawled, refetched, until
from tests.dashboard.dashboard_world import World, served
from tests.dashboard.stand_in import sample
from tests.effort import slow
from tests.testweb.changing import changing_web
from trapline.crawler.engine.options import RefreshOptions
from trapline.testweb import serve

# Fields whose names are data, such as statuses and reasons.
TALLIES = {"errors", "rejected", "abandoned", "by_status", "settings", "shares", "processor"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("samples") / "crawl"
    with serve(changing_web(2.0)) as server:
        refresh = RefreshOptions(continuous=True, rate=40.0)
        crawled(folder, server.seed_urls, server.hosts, until(refetched(12, 3)), refresh=refresh, delay_s=0.05)
    with served(folder) as world:
        yield world


def differences(made: Any, real: Any, place: str) -> list[str]:
    """Return the fields that one of the answers has and the other has not. Values that are missing or empty say nothing."""
    if isinstance(made, list) and isinstance(real, list) and made and real:
        return differences(made[0], real[0], f"{place}[]")
    if not isinstance(made, dict) or not isinstance(real, dict) or place.rpartition(".")[2] in TALLIES:
        return []
    odd = [f"{place}.{name}" for name in sorted(made.keys() ^ real.keys())]
    return odd + [
        one for name in made.keys() & real.keys() for one in differences(made[name], real[name], f"{place}.{name}")
    ]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("crawls", "/api/crawls"),
        ("overview", "/api/0/overview"),
        ("history", "/api/0/history"),
        ("partitions", "/api/0/partitions"),
        pytest.param("refresh", "/api/0/refresh", marks=pytest.mark.slow),
        pytest.param("quality", "/api/0/quality", marks=pytest.mark.slow),
    ],
)
def test_samples_have_the_fields_of_real_answers(world: World, name: str, path: str) -> None:
    reply = world.until(path)
    assert reply.status == 200, reply
    assert differences(sample(name), reply.json, name) == []


@slow
def test_sites_and_their_pages_have_the_fields_of_real_answers(world: World) -> None:
    rows = world.get("/api/0/sites")["rows"]
    assert differences(sample("sites"), rows, "sites") == []
    assert differences(sample("explain"), world.until(f"/api/0/explain?url={rows[0]['origin']}").json, "explain") == []
    page = {**sample("sites")[0], **sample("site")}
    assert differences(page, world.get(f"/api/0/sites/{rows[0]['id']}"), "site") == []


def test_events_have_the_fields_of_real_answers(world: World) -> None:
    real = world.get("/api/0/events?level=debug")["events"]
    always = set.intersection(*(set(event) for event in real))
    assert real and all(always <= event.keys() for event in sample("events"))
