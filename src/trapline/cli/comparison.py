"""Several strategies on one arena: crawled one after the other, shown as a table, written as a page, pictures and JSON.

Whatever happens to one of them, those that are done are kept: a strategy that fails is reported beside the others, and
Ctrl-C ends the comparison, not what it found.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trapline.cli.arena import Arena
from trapline.cli.complaints import complain
from trapline.cli.progress import duration
from trapline.cli.strategy import Chosen
from trapline.cli.table import BEST, Column, compared
from trapline.errors import ConfigError
from trapline.output import check_writable, write_bytes, write_json, write_text

if TYPE_CHECKING:
    from trapline.report import CrawlRecord

PAGE, JSON = "compare.html", "compare.json"


@dataclass(slots=True)
class Comparison:
    """What has been found so far."""

    records: list["CrawlRecord"] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    interrupted: bool = False
    seconds: float = 0.0


def compare_all(arena: Arena, every: Sequence[Chosen], logs: Path | None = None) -> Comparison:
    """Crawl with each strategy in turn. `logs`: a folder for the log of each."""
    found, started = Comparison(), time.perf_counter()
    for number, chosen in enumerate(every, 1):
        try:
            crawl = arena.crawl(chosen, f"{chosen.name} ({number} of {len(every)})")
            found.records.append(arena.judge(crawl))
            if logs:
                arena.write_log(crawl, logs / log_name(chosen.name))
        except KeyboardInterrupt:
            found.interrupted = True
            break
        except Exception as error:  # whatever it is, the others are not to blame
            found.failures[chosen.name] = error
    found.seconds = time.perf_counter() - started
    return found


def log_name(strategy: str) -> str:
    """
    >>> log_name("opic x crawl-ability")
    'log-opic-x-crawl-ability.parquet'
    """
    return f"log-{re.sub(r'[^\w.-]+', '-', strategy)}.parquet"
