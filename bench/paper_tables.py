"""Writes the results of reproduced papers into the documentation: python bench/paper_tables.py trapline-papers

The folder has the JSON of one or more papers. Their claims and tables go to docs/results/NAME.json; the pages docs/reproduce-NAME.md and
docs/reproduce.md have them below the line MARK. A file NAME-WORD.json has the same experiments on other webs: the page of the paper gets
the verdicts on these webs, one column for each.
"""

import json
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "results"
PAPERS = ("cao", "castillo", "thesis", "cho", "xu")
MARK = "<!-- Below this line: python bench/paper_tables.py -->"
HEAD = ["item", "claim", "published", "ours", "verdict", "reason"]
Found = dict[str, Any]


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([row(head), row(["---"] * len(head)), *map(row, rows)])


def claims(found: Found) -> list[list[str]]:
    return [
        [item["name"], one["text"], one["published"], one["ours"], f"**{one['verdict']}**", one["reason"]]
        for item in found["items"]
        for one in item["claims"]
    ]


def verdicts_by_web(runs: list[Found]) -> str:
    """Return a table with the verdicts of several runs of a paper. Items of a run on several webs end with the number of their web."""
    columns: list[str] = []
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for run in runs:
        for name, text, *_, verdict, _ in claims(run):
            item, _, number = name.partition(", web ")
            web = run["webs"][int(number or 1) - 1].split(", ")[0]
            if web not in columns:
                columns.append(web)
            rows.setdefault((item, text), {})[web] = verdict.strip("*")
    body = [
        [*key, *(found.get(web, "-") for web in columns)]
        for key, found in sorted(rows.items(), key=lambda row: row[0][0])
    ]
    return table(["item", "claim", *columns], body)


def paper_part(found: Found, others: list[Found]) -> str:
    """Return what the page of a paper has below the mark: the claims, the verdicts of runs on other webs, each item with its tables and
    notes, and the webs."""
    options = " ".join(f"{name}={value}" for name, value in found["options"].items() if value not in (None, [], False))
    parts = [
        f"From Trapline {found['trapline']}, {options or 'with default options'}.",
        "## Claims",
        table(HEAD, claims(found)),
    ]
    if others:
        parts += ["## Verdicts on other webs", '"-": the experiment did not run, or the web is too small for it.']
        parts += [verdicts_by_web([found, *others])]
    for item in found["items"]:
        parts += [f"## {item['name']}: {item['title']}", f"{item['setting'].removesuffix('.')}."]
        parts += [f"{one['title']}\n\n{table(one['head'], one['rows'])}" for one in item["tables"]]
        parts += item["notes"]
    names = [name for run in (found, *others) for name in run["webs"]]
    return "\n\n".join([*parts, "## Webs", "\n".join(f"- {name}" for name in names)])


def summary_part(papers: list[Found]) -> str:
    """Return what docs/reproduce.md has below the mark: how many claims of each paper hold, and all claims."""
    verdicts = ["holds", "holds in part", "does not hold", "undecided"]
    counts = [
        [f"[{one['paper']}](reproduce-{one['paper']}.md)", f"{len(claims(one))}"]
        + [f"{sum(f'**{verdict}**' == claim[4] for claim in claims(one))}" for verdict in verdicts]
        for one in papers
    ]
    rows = [
        [f"[{one['paper']}, {name}](reproduce-{one['paper']}.md)", text, published, ours, verdict]
        for one in papers
        for name, text, published, ours, verdict, _ in claims(one)
    ]
    head = ["item", "claim", "published", "ours", "verdict"]
    return f"## Claims\n\n{table(['paper', 'claims', *verdicts], counts)}\n\n{table(head, rows)}"


def known(pattern: str) -> list[Found]:
    """Return the stored results whose names match, in the order of their names."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(RESULTS.glob(pattern))]


def page(name: str, part: str) -> str:
    """Return the page of the documentation with this part below its mark."""
    above = (DOCS / name).read_text(encoding="utf-8").split(MARK)[0].rstrip()
    return f"{above}\n\n{MARK}\n\n{part}\n"


def pages() -> dict[str, str]:
    papers = [found for name in PAPERS for found in known(f"{name}.json")]
    parts = {f"reproduce-{one['paper']}.md": paper_part(one, known(f"{one['paper']}-*.json")) for one in papers}
    return {name: page(name, part) for name, part in (parts | {"reproduce.md": summary_part(papers)}).items()}


def main(folder: Path) -> None:
    RESULTS.mkdir(exist_ok=True)
    for file in sorted(folder.glob("*.json")):
        if file.stem.split("-")[0] in PAPERS:
            found = json.loads(file.read_text(encoding="utf-8"))
            graphs = found["options"].get("graph") or []
            found["options"] |= {"graph": [Path(graph).name for graph in graphs]}  # not where they are on this machine
            found["items"] = [{key: value for key, value in item.items() if key != "charts"} for item in found["items"]]
            (RESULTS / file.name).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
