"""Prints the table "Which claims hold" of docs/reproduce-cho.md: python bench/cho_table.py FILE...

FILE is the output of `trapline reproduce cho --json FILE`. The table, in Markdown, has a row for each claim, in the order of
the experiments, and a column for each graph.
"""

import json
import sys
from pathlib import Path

SHORT = {"holds": "yes", "does not hold": "no", "undecided": "?"}


def main(files: list[str]) -> None:
    graphs = [graph for file in files for graph in json.loads(Path(file).read_text())["graphs"]]
    verdicts = {
        (number, claim["claim"], graph["name"]): SHORT[claim["verdict"]]
        for graph in graphs
        for number, experiment in graph["experiments"].items()
        for claim in experiment["claims"]
    }
    names = [graph["name"] for graph in graphs]
    print("| | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
    for number, claim in sorted(
        dict.fromkeys((number, claim) for number, claim, _ in verdicts), key=lambda row: row[0]
    ):
        cells = (verdicts.get((number, claim, name), "-") for name in names)
        print(f"| {number}: {claim} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
