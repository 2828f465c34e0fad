"""The results of `trapline demo`: what each crawl collected in the same time, and which differences mean something.

Every round crawls once with each strategy. A busy machine makes whole rounds slower, so strategies are compared within rounds: a
difference means something if the 95 % confidence interval of its mean over the rounds does not include 0 (Student's t). This module
reads the databases of crawls and returns text; it neither crawls nor prints.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from trapline.confidence import Estimate, estimate
from trapline.units import counted


class Collected(NamedTuple):
    """What one crawl collected in its time, counted from its first request."""

    folder: Path
    share: float  # of the value of all pages
    pages: int
    failed: int
    rules_broken: int


Rounds = Mapping[str, Sequence[Collected]]  # by strategy; all have the same number of rounds


def collected(folder: Path, seconds: float, values: Mapping[str, float]) -> Collected:
    """Return what a crawl collected. `values`: the value of each page by URL, with the sum 1.

    Pages that came later do not count: on a busy machine, a crawl takes longer to stop.
    """
    from trapline.crawler.inspect.audit import politeness_violations
    from trapline.crawler.inspect.database_reader import open_database
    from trapline.crawler.inspect.summary import span_of
    from trapline.frontier import FAILED, FETCHED

    of_result = "from fetch join page on page.id = fetch.page where result = ? and started + total_s <= ?"
    with closing(open_database(folder)) as database:
        until = span_of(database).began + seconds
        urls = [url for (url,) in database.execute(f"select distinct url {of_result}", (FETCHED, until))]
        (failed,) = database.execute(f"select count(*) {of_result}", (FAILED, until)).fetchone()
        broken = politeness_violations(database)
    return Collected(folder, sum(values[url] for url in urls), len(urls), failed, broken)


def median_round(crawls: Sequence[Collected]) -> Collected:
    """Return the crawl with the median share; of two in the middle, the better one."""
    return sorted(crawls, key=lambda crawl: crawl.share)[len(crawls) // 2]


# ---- Text.


def rounds_table(rounds: Rounds) -> str:
    """Return a table with one row per strategy: means over the rounds, and the sum of broken rules."""
    lines = [("strategy", "% of all PageRank", "pages", "failed", "rules broken")]
    for name, crawls in rounds.items():
        pages, failed = (fmean(column) for column in ([c.pages for c in crawls], [c.failed for c in crawls]))
        broken = sum(crawl.rules_broken for crawl in crawls)
        lines.append((name, _percent(_share(crawls)), f"{pages:,.0f}", f"{failed:,.0f}", f"{broken:,}"))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        f"{name:{widths[0]}}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        for name, *cells in lines
    )


def findings(rounds: Rounds) -> str:
    """Return the sentences that say which strategy collected most, and which differences mean something."""
    best = max(rounds, key=lambda name: _share(rounds[name]).mean)
    number, others = len(rounds[best]), [name for name in rounds if name != best]
    if number < 2:
        return (
            f"{best} collected most. One round does not show which differences mean something; give --rounds 3 or more."
        )
    behind = [name for name in others if _is_clear(rounds[best], rounds[name])]
    unclear = [name for name in others if name not in behind]
    said = [f"{best} collected most on average of {counted(number, 'round')}."]
    if behind:
        said.append(f"It is ahead of {_listed(behind)}: the 95 % confidence interval of the difference is above 0.")
    if unclear:
        said.append(
            f"Its lead over {_listed(unclear)} is not clear: another run may order them differently. More rounds show more."
        )
    return " ".join(said)


def _share(crawls: Sequence[Collected]) -> Estimate:
    return estimate([crawl.share for crawl in crawls])


def _is_clear(better: Sequence[Collected], worse: Sequence[Collected]) -> bool:
    """Return whether the confidence interval of the difference within rounds is above 0."""
    return estimate([one.share - other.share for one, other in zip(better, worse, strict=True)]).is_above_zero


def _percent(share: Estimate) -> str:
    return f"{100 * share.mean:.1f}" + ("" if share.ci is None else f" ± {100 * share.ci:.1f}")


def _listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
