"""Prints a reproduced paper as tables in Markdown: python bench/paper_tables.py trapline-castillo/castillo.json

docs/reproduce-castillo.md has what this prints, below its introduction.
"""

import json
import sys
from pathlib import Path
from typing import Any


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([row(head), row(["---"] * len(head)), *map(row, rows)])


def claims(found: dict[str, Any]) -> str:
    rows = [
        [item["name"], one["text"], one["published"], one["ours"], f"**{one['verdict']}**", one["reason"]]
        for item in found["items"]
        for one in item["claims"]
    ]
    return table(["item", "claim", "published", "ours", "verdict", "reason"], rows)


def main(file: Path) -> None:
    found = json.loads(file.read_text(encoding="utf-8"))
    print(f"## Claims\n\n{claims(found)}")
    for item in found["items"]:
        for one in item["tables"]:
            print(
                f"\n## {item['name']}: {item['title']}\n\n{one['title']}; {item['setting']}.\n\n{table(one['head'], one['rows'])}"
            )
    print("\n## Webs\n")
    for name in found["webs"]:
        print(f"- {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
