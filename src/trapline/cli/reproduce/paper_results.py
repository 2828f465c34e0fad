"""The output of a reproduced paper: a table of its claims in the terminal, an HTML page (`paper_page.py`), one PNG per chart, and JSON."""

import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trapline.cli.reproduce.paper_page import drawn_chart, paper_page, summary
from trapline.output import write_bytes, write_json, write_text
from trapline.terminal import say, say_json, say_text

if TYPE_CHECKING:
    from trapline.lab.paper import Paper, PaperTable

_NARROW, _WIDE = 14, 100


def put_out_paper(paper: "Paper", folder: Path, as_json: bool, options: Mapping[str, Any]) -> None:
    """Write the page, plots and JSON into the folder, and print tables, or JSON."""
    write(paper, folder, options)
    if as_json:
        say_json(for_machines(paper, options))
    else:
        show(paper)
    say(f"wrote {folder / paper.name}.html, {paper.name}.json and plots (.png)", err=True)


def show(paper: "Paper") -> None:
    """Print the tables, then each claim with its verdict, and how many hold."""
    for item in paper.items:
        say(f"{item.name}. {item.title}")
        say_text(textwrap.fill(item.setting, _WIDE, initial_indent="  ", subsequent_indent="  "))
        for table in item.tables:
            _show_table(table)
        for claim in item.claims:
            say_text(
                _wrapped(
                    f"  {claim.verdict:{_NARROW}} ", f"{claim.text}. Published: {claim.published}. Ours: {claim.ours}"
                )
            )
            if claim.reason:
                say_text(_wrapped(" " * (_NARROW + 3), claim.reason))
        for note in item.notes:
            say_text(_wrapped("  ", note))
        say("")
    say(summary(paper))


def _wrapped(head: str, text: str) -> str:
    return textwrap.fill(text, _WIDE, initial_indent=head, subsequent_indent=" " * len(head))


def _show_table(table: "PaperTable") -> None:
    say(f"  {table.title}")
    lines = [table.head, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = "".join(f"  {cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        say(f"  {first:{widths[0]}}{cells}")


def for_machines(paper: "Paper", options: Mapping[str, Any]) -> dict[str, Any]:
    from trapline import __version__

    return {"trapline": __version__, "paper": paper.name, "options": dict(options), **asdict(paper)}


def write(paper: "Paper", folder: Path, options: Mapping[str, Any]) -> None:
    """Write the page, the plots and the numbers into the folder."""
    from trapline.report.plot import chart_png

    write_json(folder / f"{paper.name}.json", for_machines(paper, options))
    write_text(folder / f"{paper.name}.html", paper_page(paper, options))
    for item in paper.items:
        for chart in item.charts:
            drawn = drawn_chart(chart)
            write_bytes(
                folder / f"{paper.name}-{chart.name}.png",
                chart_png(drawn, drawn.title, f"{item.name}\n{_short(item.setting)}"),
            )


def _short(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 79))
