"""The table "What holds" of docs/reproduce-cho.md, from what `trapline reproduce cho --json FILE` wrote. python bench/cho_table.py FILE...

A row a claim, in the order of the experiments, a column a graph. Markdown to stdout.
"""

import json
import sys
from pathlib import Path

SHORT = {"holds": "yes", "does not hold": "no", "undecided": "?"}


def main(files: list[str]) -> None:
    graphs = [graph for file in files for graph in json.loads(Path(file).read_text())["graphs"]]
    verdicts = {
        (number, one["claim"], graph["name"]): SHORT[one["verdict"]]
        for graph in graphs
        for number, experiment in graph["experiments"].items()
        for one in experiment["claims"]
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
