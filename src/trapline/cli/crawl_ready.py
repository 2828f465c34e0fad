"""A crawl before it runs, as the command line has it: what may be said of it, and all that must be compiled first."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.cli.compiling import compile_kernels, compile_policies, compile_ranks, compile_replay
from trapline.cli.progress import Progress
from trapline.cli.strategy import Chosen, files_of
from trapline.terminal import say

if TYPE_CHECKING:
    from trapline.crawl.opening import Prepared
    from trapline.crawl.options import CrawlOptions


def prepared_new(options: "CrawlOptions", folder: Path) -> "Prepared":
    from trapline.crawl.opening import prepare_new

    with Progress("looking up the seeds", plain_every_s=math.inf) as progress:  # some seconds at most
        progress.update(0, len(options.seeds))
        return prepare_new(options, folder)


def note(notes: Iterable[str], quiet: bool) -> None:
    for one in () if quiet else notes:
        say(f"trapline: note: {one}", err=True)


def compile_for(prepared: "Prepared", quiet: bool) -> None:
    import trapline.crawl.run  # noqa: F401  its kernels, all imported before they are counted
    from trapline.refresh import policy_named

    options = prepared.options
    if prepared.new:
        compile_kernels(quiet)
    else:
        compile_replay(quiet)
    compile_ranks([Chosen(prepared.strategy, files_of(options.strategy, options.page_rank, options.site_rank))], quiet)
    if options.refresh is not None:
        compile_policies([policy_named(options.refresh.policy)], quiet)
