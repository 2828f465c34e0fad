"""The Grafana dashboard only uses metrics and labels that there are, and its queries parse."""

import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from trapline.cli.crawl.dashboard_command import dashboard
from trapline.dashboard.metrics import COUNTERS, GAUGES, HISTOGRAMS

DASHBOARD = json.loads((files("trapline.dashboard") / "grafana.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
LEGENDS = [
    (target["expr"], target["legendFormat"]) for panel in DASHBOARD["panels"] for target in panel.get("targets", ())
]
LABELS = {
    **{metric.name: {"crawl", *metric.labels} for metric in (*COUNTERS, *GAUGES)},
    **{f"{metric.name}_{end}": {"crawl"} for metric in HISTOGRAMS for end in ("sum", "count")},
    **{f"{metric.name}_bucket": {"crawl", "le"} for metric in HISTOGRAMS},
}
_METRIC = re.compile(r"(trapline_\w+)(?:\{([^}]*)\})?")
_GROUPS = re.compile(r"\b(?:by|ignoring|on|without) \(([^)]*)\)")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_query_uses_known_metrics_and_their_labels(expression: str) -> None:
    metrics = _METRIC.findall(expression)
    assert metrics
    for name, selector in metrics:
        assert name in LABELS
        assert set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", selector)) <= LABELS[name]
    groups = {label.strip() for group in _GROUPS.findall(expression) for label in group.split(",")}
    assert groups <= set().union(*(LABELS[name] for name, _ in metrics))


@pytest.mark.parametrize(("expression", "legend"), LEGENDS)
def test_a_legend_names_labels_that_are_left(expression: str, legend: str) -> None:
    kept = [group.split(",") for group in re.findall(r"\bby \(([^)]*)\)", expression)]
    left = {label.strip() for label in kept[0]} if kept else LABELS[_METRIC.findall(expression)[0][0]]
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= left


def test_every_metric_is_shown() -> None:
    shown = {name for expression in EXPRESSIONS for name, _ in _METRIC.findall(expression)}
    hidden = {"trapline_store_backlog_batches"}
    assert {metric.name for metric in (*COUNTERS, *GAUGES)} - shown == hidden
    assert all(f"{metric.name}_bucket" in shown for metric in HISTOGRAMS)


def test_panels_have_their_own_numbers_and_places_and_the_chosen_data_source() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for place in (panel["gridPos"],)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) == 23
    sources = {target["datasource"]["uid"] for panel in panels for target in panel.get("targets", ())}
    assert sources == {"${DS_PROMETHEUS}"}
    assert DASHBOARD["templating"]["list"][0]["name"] == "DS_PROMETHEUS"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_parses_every_query(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{number}", "expr": expression.replace("$__rate_interval", "5m").replace("$crawl", ".*")}
        for number, expression in enumerate(EXPRESSIONS)
    ]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "grafana", "rules": rules}]}))
    checked = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert f"{len(rules)} rules found" in checked.stdout


def test_the_command_prints_the_dashboard() -> None:
    printed = CliRunner().invoke(dashboard, ["--print-grafana"])
    assert printed.exit_code == 0
    assert json.loads(printed.output) == DASHBOARD
