"""`trapline reproduce all`: the pages of all papers in one folder, and an index of their claims."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.lab.made_up_crawls import no_live_crawls
from trapline.cli import run
from trapline.cli.reproduce import all_papers
from trapline.cli.reproduce.scheduling import PaperOptions, cao_plan
from trapline.lab.paper import PaperClaim, PaperItem, PaperPart, PaperPlan
from trapline.report import plot

SMALL = PaperOptions(pages=2000, webs=2)


def other() -> PaperPlan:
    claim = PaperClaim("A < B", "yes", "+1", "holds")
    item = PaperItem("fig. 1 & 2", "An item", "made up", [claim])
    return PaperPlan("other", "Another paper", [PaperPart([], lambda _: [item])])


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> None:
    no_live_crawls(monkeypatch)
    monkeypatch.setattr(plot, "chart_png", lambda *_: b"")
    monkeypatch.setattr(all_papers, "PLANS", {"cao": lambda _: partial(cao_plan, SMALL), "other": lambda _: other})


@pytest.mark.usefixtures("plans")
def test_the_index_has_every_claim_with_a_link_to_its_item(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "all", "--quick", "-o", str(tmp_path), "--json"]) == 0
    done = capsys.readouterr()
    assert json.loads(done.out) == json.loads((tmp_path / "all.json").read_text())
    assert "all: 25 claims: " in done.err
    index = (tmp_path / "index.html").read_text()
    assert index.count("<tr><td class=") == 25 and "A &lt; B" in index
    links = re.findall(r'href="(\w+\.html)#([^"]+)"', index)
    assert len(links) == 25
    for page, anchor in set(links):
        assert f'id="{anchor}"' in (tmp_path / page).read_text()


def test_every_paper_of_the_group_is_part_of_it() -> None:
    from trapline.cli.reproduce.command import PAPERS

    assert PAPERS.keys() - all_papers.PLANS.keys() == {"all"}
