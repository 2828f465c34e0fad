"""The record of live/status: every key has a place in the documentation, and every value a form in JSON."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.status import PREPARING, CrawlStatus, RefetchCounts
from trapline.crawler.engine.status_reporter import StatusWriter, status_record
from trapline.crawler.engine.tally import SignalCounts
from trapline.crawler.files.handled import HandledCounts
from trapline.crawler.files.status_file import StatusFile, read_status
from trapline.crawler.inspect import why_not_faster
from trapline.crawler.speed.connection_states import STATES, ConnectionStates, CrawlSpeed, WaitingSites
from trapline.crawler.speed.pace import Pace
from trapline.crawler.speed.what_if import WhatIf

DOCS = Path(__file__).parents[2] / "docs"
STATUS = CrawlStatus(
    CrawlProgress(50.0, 20.0, 1_234, 12, 9_876, 5_000, 3_000, 100, 4, 3.5),
    *(61.7, 1e6, lambda: [("http://a.test", 9)], [("timeout", 7)], "crawl-ability", "out", "", math.inf, 64),
)
STATES_NOW = ConnectionStates(site_delay=60, fetching=4)
FULL = STATUS._replace(
    pace=Pace("delay", 5, 60.0, True, 3, 2, 20.0, 0.5, 0.0),
    speed=CrawlSpeed(STATES_NOW, STATES_NOW, WaitingSites(3_000, 99, 90, 0, {"site_delay": 86}, 2.5)),
    what_ifs=[WhatIf("delay", 0.0, 3.0)],
    refetches=RefetchCounts(3, 1, SignalCounts(4, 5), False),
    handled=HandledCounts(9, 8, 7),
    notes=["a note"],
    parts=[{"partition": 0}],
)


@pytest.mark.parametrize("status", [STATUS, FULL])
def test_every_value_has_a_form_in_json(status: CrawlStatus) -> None:
    record = status_record(status, status.busiest())
    again = json.loads(json.dumps(record, allow_nan=False))
    assert again["progress"]["pages"] == 1_234 and again["goal"] is None and again["connections"]["limit"] == 64


def test_the_documentation_explains_every_key() -> None:
    page = (DOCS / "crawl-folder.md").read_text().partition("## The running crawl")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall("`([a-z_]+)`", row)) == sorted(status_record(FULL, ()))
    for name in ("now", "lately", *WaitingSites._fields, *WhatIf._fields, *HandledCounts._fields):
        assert f"`{name}`" in page, name


def test_the_documentation_explains_every_state_and_names_every_limit() -> None:
    page = (
        (DOCS / "crawl.md")
        .read_text()
        .partition("**Why is the crawl not faster?**")[2]
        .partition("**Small sites.**")[0]
    )
    assert re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE) == list(STATES)
    names = (value for name, value in vars(why_not_faster).items() if re.fullmatch("[A-Z][A-Z_]+", name))
    limits = {value for value in names if isinstance(value, str)} - {why_not_faster.RUNNING, why_not_faster.ENDED}
    assert set(re.findall(r"`([a-z-]+)`", page.partition("The values of `limit` are ")[2])) == limits


def test_a_status_is_shown_with_its_sentence_and_written(tmp_path: Path) -> None:
    shown: list[CrawlStatus] = []
    with StatusFile(tmp_path) as file:
        writer = StatusWriter(shown.append, file, CrawlOptions(("http://a.test/",)))
        writer(FULL)
        writer(FULL._replace(phase=PREPARING))
    assert shown[0].answer is not None and shown[1].answer is None
    assert shown[0].answer.sentence == "60 of 64 connections wait for the delay of their sites."
    record: dict[str, Any] | None = read_status(tmp_path)
    assert record is not None and record["phase"] == "preparing" and record["busiest"] == [["http://a.test", 9]]


def test_a_crawl_without_a_folder_is_only_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown: list[CrawlStatus] = []
    StatusWriter(shown.append, StatusFile(None), CrawlOptions(("http://a.test/",)))(FULL)
    assert shown == [FULL] and list(tmp_path.iterdir()) == []
