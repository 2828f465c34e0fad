"""No committed data is ever lost: kills, power losses, failing disks, and folders that must not be changed."""

import contextlib
import errno
import io
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from tests.crawler.kill_world import TRAPLINE, Ledger, Run, finished, options_of, prepared, rows, served, settled
from tests.crawler.test_kill import WHOM, check_archives, killed
from tests.proof.disk import STRACE, Disk, recorded
from tests.proof.section import Finding, Section, say
from trapline import cli
from trapline.crawler.engine.run import open_crawl, resume_crawl
from trapline.crawler.files.verify import verify
from trapline.testweb import Served

_METHOD = """
Every crawl is started by the same command as a user would use. testweb serves generated webs on loopback; its own log shows which pages
were requested twice.

- *Kills*: SIGKILL to the loop, to its store, or to both, at random moments while the crawl starts, resumes, crawls, takes a snapshot,
  stops or sorts its index. The crawl is resumed after each kill.
- *Power loss*: strace records every write, every sync and every change of a file name during a whole crawl. The folder is rebuilt as of
  a random moment, from the data that was synced by then. Half of the time, some unsynced writes are added, in any order and cut off.
  The crawl then continues from there.
- *Failing disk*: strace makes one kind of call on one kind of file fail: with ENOSPC from a certain call on, or with EIO once.
- *Refusals*: all bytes of the folder are compared before and after the command.

After each kill, loss and failure, the crawl must end with the same pages as an undisturbed crawl, and `trapline verify` must find no
problem.
"""

_SNAPSHOTS = [f"snapshot/{number}{below}" for number in range(1, 200) for below in ("", "/frontier", "/seen")]
_ARRAYS = [f"snapshot/{number}/frontier.new/page.npy" for number in range(1, 200)]


class Writes(NamedTuple):
    """A kind of system calls on a kind of files."""

    what: str
    calls: str
    paths: Sequence[str]
    latest: int = 3  # the latest of these calls that may be the first to fail


_KINDS = [
    Writes("begin an archive", "openat", ["warc/trapline-00000.warc.gz"], 1),
    Writes("write the archive", "write", ["warc/trapline-00000.warc.gz"]),
    Writes("sync the archive", "fdatasync", ["warc/trapline-00000.warc.gz"]),
    Writes("make the folder of archives", "mkdir,mkdirat", ["warc"], 1),
    Writes("sync the folder of archives", "fsync", ["warc"], 2),
    Writes("begin the index", "openat", ["index.cdxj"], 1),
    Writes("write the index", "write", ["index.cdxj"]),
    Writes("sync the index", "fdatasync", ["index.cdxj"]),
    Writes("begin the database's log", "openat", ["crawl.db-wal"], 2),
    Writes("write the database's log", "pwrite64", ["crawl.db-wal"], 40),
    Writes("sync the database's log", "fdatasync", ["crawl.db-wal"], 8),
    Writes("write the database", "pwrite64", ["crawl.db"], 4),
    Writes("sync the database", "fdatasync", ["crawl.db"], 2),
    Writes("begin a piece of the sorted index", "openat", [".index.cdxj.piece-0"], 1),
    Writes("write the sorted index", "write", [".index.cdxj.piece-0", ".index.cdxj.sorted"], 2),
    Writes("sync the sorted index", "fsync", [".index.cdxj.sorted"], 1),
    Writes("put the sorted index in place", "rename,renameat,renameat2", [".index.cdxj.sorted"], 1),
    Writes("make the folders of a snapshot", "mkdir,mkdirat", _SNAPSHOTS),
    Writes("begin an array of a snapshot", "openat", _ARRAYS, 2),
    Writes("write an array of a snapshot", "write", _ARRAYS, 2),
    Writes("sync an array of a snapshot", "fsync", _ARRAYS, 2),
    Writes(
        "put a snapshot in place",
        "rename,renameat,renameat2",
        [f"snapshot/{number}/frontier.new" for number in range(1, 200)],
        2,
    ),
]
_SHORT_KIND = "sync the database's log"


def run(full: bool) -> Iterator[Finding]:
    yield from _kills(10 if full else 1, 20 if full else 1)
    if STRACE is None:
        for claim in ("A crawl continues after a power loss.", "A crawl continues after a failed write."):
            yield Finding(claim, "strace is not installed", None)
    else:
        yield from _power_losses(4 if full else 1, 25 if full else 1)
        yield from _failing_writes(full)
    yield from _refusals()


@contextmanager
def _place() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="trapline-durability-"))
    try:
        yield place
    finally:
        shutil.rmtree(place)


class TriedClaim:
    """Counts the tries and the failures of a claim."""

    def __init__(self, claim: str) -> None:
        self._claim, self.times, self._failures = claim, 0, list[str]()

    def __call__(self, about: str, check: Callable[[], object]) -> bool:
        self.times += 1
        try:
            check()
        except Exception as error:
            self._failures.append(f"{about}: {type(error).__name__}: {error}".splitlines()[0])
            say(self._failures[-1])
            return False
        return True

    def finding(self, figures: str) -> Finding:
        failed = f"; {len(self._failures)} failed: {'; '.join(self._failures[:3])}" if self._failures else ""
        return Finding(self._claim, figures + failed, self.times > 0 and not self._failures)


# ---- kills


def _kills(webs: int, kills: int) -> Iterator[Finding]:
    pages = TriedClaim(
        "A crawl that is killed at random moments, and resumed each time, ends with the same pages as an undisturbed crawl."
    )
    requests = TriedClaim("Only pages that were in flight when a process was killed are requested twice.")
    archives = TriedClaim(
        "warcio reads every archive to its end, all digests are correct, and `trapline verify` finds no problem."
    )
    whom, done, vain, most = Counter[str](), 0, list[int](), 0
    for seed in range(1, 2 * webs + 1):  # some crawls may end before they are killed often enough
        if done >= webs * kills:
            break
        with _place() as place:
            crawls = []
            if not pages(f"web {seed}", lambda: crawls.append(killed(place, kills, seed))):  # noqa: B023
                continue
            (crawl,) = crawls
            pages(f"web {seed}", crawl.check_pages)
            requests(f"web {seed}", lambda: vain.extend(crawl.check_requests()))  # noqa: B023
            archives(f"web {seed}", crawl.check_archives)
            archives(f"web {seed}", lambda: _check_sound(crawl.folder))  # noqa: B023
            whom.update({one: sum(n for when, n in crawl.kills.items() if when.endswith(one)) for one in WHOM})
            done, most = done + crawl.kills.total(), most + len(crawl.whole)
            say(f"web {seed}: {dict(crawl.kills)}")
    by = ", ".join(f"{number} of {one}" for one, number in whom.items())
    yield pages.finding(f"{done} kills ({by}) in crawls of {requests.times} webs with {most:,} pages")
    yield requests.finding(
        f"{sum(vain):,} requests for pages in flight repeated, at most {max(vain, default=0)} after a kill"
    )
    yield archives.finding(f"{requests.times} folders")


def _check_sound(folder: Path) -> None:
    assert not (problems := verify(folder).problems), str(problems[0])


# ---- power loss


def _power_losses(webs: int, cuts: int) -> Iterator[Finding]:
    pages = TriedClaim("After a power loss the crawl continues, and ends with the same pages as an undisturbed crawl.")
    kept = TriedClaim(
        "All data that the store had acknowledged exists after the power loss, and is not requested again."
    )
    sound = TriedClaim(
        "`trapline verify` finds nothing lost after the power loss, and no problem when the crawl has ended."
    )
    crawls = events = losses = 0
    for seed in range(1, webs + 1):
        with _place() as place, served(160, 10, seed) as server:
            chance, whole = random.Random(seed), _undisturbed(server, place)
            start = prepared(place / "start", options_of(server))
            for number in range(cuts):
                if number in {0, cuts // 2}:  # the second recorded crawl continues after a loss
                    source = shutil.copytree(start, place / f"recorded-{number}")
                    start = shutil.copytree(source, place / f"before-{number}")
                    happened = _recorded(source)
                    crawls, events = crawls + 1, events + len(happened)
                about, folder = f"web {seed}, loss {number}", place / f"loss-{number}"
                disk = Disk(start)
                for event in happened[: chance.randrange(len(happened))]:
                    disk.play(event)
                disk.lose_power(folder, chance if number % 2 else None)
                kept(about, lambda: _check_acknowledged(folder, disk.acknowledged))  # noqa: B023
                sound(about, lambda: _check_nothing_lost(folder))  # noqa: B023
                if number == cuts // 2 - 1:
                    start = shutil.copytree(folder, place / "second")
                ledger, before = Ledger(server, len(server.log())), set(settled(folder))
                if pages(about, lambda: _check_resumed_result(folder, whole)):  # noqa: B023
                    ledger.run_ended(folder)
                    kept(about, lambda: _check_not_repeated(ledger, before))  # noqa: B023
                    sound(about, lambda: _check_sound(folder))  # noqa: B023
                    sound(about, lambda: check_archives(folder))  # noqa: B023
                losses += 1
                shutil.rmtree(folder)
    yield pages.finding(
        f"{losses} losses at random points of {crawls} crawls with {events:,} writes, syncs and changes of names"
    )
    yield kept.finding(f"{losses} losses")
    yield sound.finding(f"{losses} losses")


def _undisturbed(server: Served, place: Path) -> dict[str, int]:
    open_crawl(options_of(server), place / "undisturbed", nullcontext(lambda status: None))
    return settled(place / "undisturbed")


def _recorded(folder: Path) -> list:  # type: ignore[type-arg]
    code, said, events = recorded(folder, folder.with_suffix(".trace"), [*TRAPLINE, "--plain", "--resume", str(folder)])
    assert code == 0, said
    return events


def _check_acknowledged(folder: Path, acknowledged: int) -> None:
    ((last,),) = rows(folder, "select coalesce(max(batch), 0) from journal")
    assert last >= acknowledged, f"batch {acknowledged} was acknowledged, and {last} is the last that is there"


def _check_nothing_lost(folder: Path) -> None:
    """Check that only uncommitted answers are missing. The resumed crawl fetches those again."""
    for problem in verify(folder).problems:
        is_uncommitted = "never committed" in problem.what or "after the last commit" in problem.what
        assert problem.repair and (is_uncommitted or not problem.lost), str(problem)


def _check_resumed_result(folder: Path, whole: dict[str, int]) -> None:
    resume_crawl(folder, nullcontext(lambda status: None))
    assert settled(folder) == whole, "other pages than the undisturbed crawl's"


def _check_not_repeated(ledger: Ledger, before: set[str]) -> None:
    again = before & set(ledger.requested(ledger.server.log())[-1])
    assert not again, f"{len(again)} committed pages asked for again"


# ---- disks that fail


def _failing_writes(full: bool) -> Iterator[Finding]:
    line = TriedClaim(
        "A crawl whose write fails stops with one clear line and exit code 2, or continues without that file."
    )
    pages = TriedClaim(
        "It can be resumed, ends with the same pages as an undisturbed crawl, and requests no committed page again."
    )
    tries = [
        (kind, error) for kind in _KINDS for error in (errno.ENOSPC, errno.EIO) if full or kind.what == _SHORT_KIND
    ]
    codes, never = Counter[int](), list[str]()
    with _place() as place, served(80, 5) as server:
        chance, whole = random.Random(1), _undisturbed(server, place)
        for kind, error in tries if full else tries[-1:]:
            about = f"{errno.errorcode[error]}, {kind.what}"
            folder = place / "failing"
            failed_crawl = _failed(server, folder, kind, error, chance)
            if failed_crawl is None:
                never.append(about)
                continue
            codes[failed_crawl.code] += 1
            say(f"{about}: {failed_crawl.code} {failed_crawl.line()}")
            line(about, lambda: _check_line(folder, failed_crawl))  # noqa: B023
            pages(about, lambda: _check_resumed(folder, failed_crawl.ledger, whole))  # noqa: B023
            shutil.rmtree(folder)
    missed = f"; not brought about: {', '.join(never)}" if never else ""
    kinds, stopped = len({kind.what for kind, _ in tries}), f"{codes[2]} crawls stopped, {codes[0]} did without"
    yield line.finding(f"{kinds} kinds of writes, {codes.total()} failures by ENOSPC and EIO: {stopped}{missed}")
    yield pages.finding(f"{pages.times} crawls resumed")


class FailedCrawl(NamedTuple):
    """The end of a crawl in which calls failed."""

    code: int
    said: str
    ledger: Ledger

    def line(self) -> str:
        return next((line for line in self.said.splitlines() if "error:" in line), "")


def _failed(server: Served, folder: Path, kind: Writes, error: int, chance: random.Random) -> FailedCrawl | None:
    """Run a crawl in which such calls fail. Return None if it made no such call."""
    for first in (chance.randint(1, kind.latest), 1):
        prepared(folder, options_of(server, snapshot_pages=25))
        ledger = Ledger(server, len(server.log()))
        when = f"{first}+" if error == errno.ENOSPC else str(first)
        code, said, log = _injected(folder, kind.calls, kind.paths, f"{errno.errorcode[error]}:when={when}")
        if "(INJECTED)" in log:
            ledger.run_ended(folder)
            return FailedCrawl(code, said, ledger)
        shutil.rmtree(folder)
    return None


def _injected(folder: Path, calls: str, paths: Sequence[str], how: str) -> tuple[int, str, str]:
    """Resume a crawl in which calls on these files of its folder fail. Return its exit code, its output, and the calls."""
    log = folder.with_suffix(".log")
    watch = [str(STRACE), "-f", "-qq", "--seccomp-bpf", "-o", str(log)]
    watch += ["-e", f"trace={calls}", "-e", f"inject={calls}:error={how}"]
    watch += [part for path in paths for part in ("-P", str(folder / path))]
    command = [*watch, *TRAPLINE, "--plain", "--resume", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr, log.read_text(errors="replace")


def _check_line(folder: Path, failed_crawl: FailedCrawl) -> None:
    lines = [line for line in failed_crawl.said.splitlines() if "error:" in line]
    assert failed_crawl.code in (0, 2), f"exit code {failed_crawl.code}: {failed_crawl.said.splitlines()[-2:]}"
    advice = (f"continue with --resume {folder}", "try again")  # the command was a --resume
    is_clear = len(lines) == 1 and str(folder) in lines[0] and lines[0].endswith(advice)
    assert failed_crawl.code == 0 or is_clear, lines or failed_crawl.said[-300:]


def _check_resumed(folder: Path, ledger: Ledger, whole: dict[str, int]) -> None:
    _check_nothing_lost(folder)
    before = set(settled(folder))
    if settled(folder) != whole:
        finished("--resume", folder)
        ledger.run_ended(folder)
        _check_not_repeated(ledger, before)
    assert settled(folder) == whole, "other pages than the undisturbed crawl's"
    _check_sound(folder)


# ---- folders that must not be changed


def _refusals() -> Iterator[Finding]:
    with _place() as place, served(60, 4) as server:
        options = options_of(server)
        yield _refused(
            "A folder of another version",
            prepared(place / "other", options),
            _of_another_version,
            "the crawl has format",
        )
        with Run("--resume", prepared(place / "running", options)) as run:
            run.wait_for(lambda: bool(settled(place / "running")))
            run.send(signal.SIGSTOP, run.loop, run.store)
            yield _refused("A folder that another process crawls", place / "running", nullcontext, "crawl")
            run.send(signal.SIGCONT, run.loop, run.store)
            assert run.ended()[0] == 0
        if STRACE is None:
            yield Finding("A folder that cannot be written is refused with one line.", "strace is not installed", None)
        else:
            yield _refused_unwritable(prepared(place / "unwritable", options))


def _refused(what: str, folder: Path, made: Callable[[Path], AbstractContextManager[object]], word: str) -> Finding:
    tried = TriedClaim(f"{what} is refused with one line and exit code 2, and no byte in it changes.")
    path, url = str(folder), "http://127.0.0.1/"
    commands = (["crawl", "--resume", path], ["crawl", url, "--allow-private", "-o", path], ["verify", path])
    with made(folder):
        for command in commands:
            tried(" ".join(command[:2]), lambda: _check_refused(folder, word, command))  # noqa: B023
    return tried.finding("crawl --resume, crawl -o, verify")


@contextmanager
def _of_another_version(folder: Path) -> Iterator[None]:
    with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
        database.execute("update meta set value = value + 1 where key = 'format'")
    yield


def _check_refused(folder: Path, word: str, command: list[str]) -> None:
    before, said = _contents(folder), io.StringIO()
    with contextlib.redirect_stderr(said):
        code = cli.run(command)
    lines = said.getvalue().strip().splitlines()
    assert code == 2 and len(lines) == 1 and str(folder) in lines[0] and word in lines[0], (code, lines)
    assert _contents(folder) == before, "the folder has changed"


def _contents(folder: Path) -> dict[str, bytes]:
    """Return every file, except those that SQLite makes for readers."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files if path.name not in ("crawl.db-shm", "crawl.db-wal")}


def _refused_unwritable(folder: Path) -> Finding:
    tried = TriedClaim(
        "A folder that cannot be written is refused with one line and exit code 2, and no byte in it changes."
    )

    def refused(error: str) -> None:
        before = _contents(folder)
        code, said, log = _injected(folder, "openat", ["lock"], error)
        assert "(INJECTED)" in log and code == 2 and said.count("error:") == 1 and str(folder) in said, said
        assert _contents(folder) == before, "the folder has changed"

    for error in ("EROFS", "EACCES"):
        tried(error, lambda: refused(error))  # noqa: B023
    return tried.finding("a read-only file system, no permission")


SECTION = Section("Durability", _METHOD, run)
