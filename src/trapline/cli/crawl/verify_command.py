"""`trapline verify`: checks whether the folder of a crawl is sound; with --repair, repairs it as far as possible."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.terminal.progress import Progress
from trapline.terminal import say, say_json
from trapline.units import bytes_shown, counted

if TYPE_CHECKING:
    from trapline.crawler.files.check_results import Problem, Verified

PROBLEMS = 1  # exit code


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--repair",
    is_flag=True,
    help="Repair what can be repaired, then check again. Overwrites damaged records and removes archives that were never "
    "committed, but first copies both to DIR/damaged.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def verify(folder: Path, repair: bool, as_json: bool, quiet: bool) -> int:
    """Check that the archives, index, database and snapshots of the crawl in DIR are undamaged and agree with each other.

    Reads every byte of the archives. Prints one line per problem. Exits with status 0 if the folder is sound, and with 1 if problems
    were found. With --repair, exits with 1 only if data was lost or a problem could not be repaired. Refuses the folder of a running crawl.
    """
    from trapline.parallel.folder.verify import verify_all

    with Progress(f"verifying {folder}", quiet=quiet, plain_every_s=2.0) as progress:
        found = verify_all(folder, repair, progress.update)
    if as_json:
        say_json(_object(folder, found))
    else:
        say(*_lines(folder, found, repair))
    return 0 if found.is_sound else PROBLEMS


def _lines(folder: Path, found: "Verified", repair: bool) -> Iterator[str]:
    left = set(map(str, found.remaining))
    for problem in found.problems:
        yield f"{problem}; {_remedy(problem, str(problem) in left, repair)}"
    checked = (
        f"{counted(found.archives, 'archive')} with {counted(found.records, 'record')}, {bytes_shown(found.bytes)}, "
        f"{counted(found.snapshots, 'snapshot')}"
    )
    if found.problems and not found.archives:
        checked = "archives and snapshots could not be checked"
    if not found.problems:
        yield f"{folder}: sound: {checked}"
    elif repair:
        yield f"{folder}: {counted(len(found.problems), 'problem')} found, {len(left)} left: {checked}"
    else:
        yield f"{folder}: {counted(len(found.problems), 'problem')} found: {checked}"


def _remedy(problem: "Problem", is_left: bool, repair: bool) -> str:
    if is_left:
        return "not repaired" if repair else "--repair can repair this" if problem.repair else "cannot be repaired"
    return "repaired, but data was lost" if problem.lost else "repaired"


def _object(folder: Path, found: "Verified") -> dict[str, Any]:
    left = set(map(str, found.remaining))
    return {
        "folder": str(folder),
        "sound": found.is_sound,
        "archives": found.archives,
        "records": found.records,
        "bytes": found.bytes,
        "snapshots": found.snapshots,
        "problems": [
            {
                "place": problem.place,
                "offset": problem.offset,
                "url": problem.url or None,
                "what": problem.what,
                "lost": problem.lost,
                "can_be_repaired": problem.repair is not None,
                "repaired": str(problem) not in left,
            }
            for problem in found.problems
        ],
    }
