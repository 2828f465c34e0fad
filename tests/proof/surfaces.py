"""Surfaces for attacks: ports, files, text that a terminal or a browser would interpret, and the installed packages."""

import importlib.metadata
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tests.hostile_text import ADDRESS, HOSTILE, hostile_site, is_harmless
from tests.parallel.processes_world import served
from tests.proof.section import ROOT, Finding, Section
from tests.signals.crawled import crawl_of
from trapline.signals.inbox import Inbox
from trapline.signals.websub.subscriptions import Subscriptions

_METHOD = """
The commands are started on this machine.

- *Ports*: every TCP socket that a command or one of its descendants listens on, from `/proc/net/tcp` and `tcp6`.
- *Files*: all files of a running crawl by two processes, and of an endpoint, created with the umask 000. All of them, and all command
  lines, are searched for the token of the crawl and for the secret of a subscription.
- *Text*: a site on loopback sends terminal escapes (`ESC ] 0 ;`, `ESC [ 2 J`), a C1 control character, a change of writing direction,
  line separators, DEL, `<script>` and a forged line of Trapline's own output, in its URLs, titles, headers, reason phrases and
  robots.txt. A hub sends the same in a refusal. The crawl runs on a pseudo-terminal. The output of this and other commands is checked
  character by character.
- *Dependencies*: `uv.lock` is compared with the installed packages. `pip-audit` runs if it is installed and has network access.
"""
_TRAPLINE = [sys.executable, "-c", "from trapline.cli import main; main()"]
_LISTEN = "0A"
# The sequences of trapline.terminal, which redraw in place; and the reset with which colorama ends a process, if numba finds colorama
_OWN_CONTROLS = re.compile(r"\r|\x1b\[(?:K|J|\d+A)|\x1b\[0m\Z")
_LONG_S = 120.0
Found = TypeVar("Found")


def run(full: bool) -> Iterator[Finding]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _ports(Path(folder), full)
        yield from _files(Path(folder), full)
        yield from _text(Path(folder), full)
    yield from _dependencies(full)


# ---- ports


def _ports(folder: Path, full: bool) -> Iterator[Finding]:
    commands: dict[str, Callable[[Path], Iterator[set[str]]]] = {"refresh serve": _endpoint}
    if full:
        commands |= {"testweb": _testweb, "crawl --processes 2": _parallel_crawl, "crawl --ray local": listening_on_ray}
    for name, listening in commands.items():
        place = folder / f"ports-{name.replace(' ', '-')}"
        place.mkdir()
        claim = f"`trapline {name}` listens only on loopback addresses."
        try:
            (found,) = listening(place)
        except _NotTried as why:
            yield Finding(claim, str(why), None)
            continue
        outside = sorted(where for where in found if not is_loopback(where.rpartition(":")[0]))
        measured = f"{len(found)} listening sockets, {len(outside)} of them on other addresses"
        yield Finding(claim, f"{measured}: {', '.join(outside)}" if outside else measured, bool(found) and not outside)


def is_loopback(address: str) -> bool:
    """
    >>> is_loopback("::ffff:127.0.0.1"), is_loopback("::")
    (True, False)
    """
    found = ip_address(address)
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


class _NotTried(Exception):
    """Raised with the reason why a claim was not tried."""


def _endpoint(folder: Path) -> Iterator[set[str]]:
    crawl = crawl_of(folder / "crawl", ["http://a.test/"])
    with _running("refresh", "serve", crawl, "--listen", "127.0.0.1:0", "--json") as process:
        yield _once(lambda: _listening(process.pid))


def _testweb(folder: Path) -> Iterator[set[str]]:
    (folder / "urls.txt").write_text("http://a.test/\nhttp://b.test/\n")
    (folder / "edges.tsv").write_text("0\t1\n1\t0\n")
    with _running("testweb", folder, "--json", cwd=folder) as process:
        yield _once(lambda: _listening(process.pid))


def _parallel_crawl(folder: Path, *how: str) -> Iterator[set[str]]:
    with (
        served(folder, latency_s=0.2) as (_, options),
        _running("crawl", "--quiet", *options, "-o", folder / "crawl", *(how or ("--processes", "2"))) as process,
    ):
        _once(lambda: _has_begun(process, folder / "crawl"))
        yield _listening(process.pid)


def listening_on_ray(folder: Path) -> Iterator[set[str]]:
    try:
        importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        raise _NotTried("ray is not installed") from None
    return _parallel_crawl(folder, "--ray", "local", "--processes", "2")


def _has_begun(process: "subprocess.Popen[bytes]", crawl: Path) -> bool:
    """Return whether both partitions crawl: they and their coordinator listen, and each has a store."""
    parts = [crawl / f"partition-{number}" / "crawl.db" for number in range(2)]
    return all(one.exists() for one in parts) and len(_listening(process.pid)) >= 3


def _listening(top: int) -> set[str]:
    """Return `address:port` of every listening TCP socket of a process and its descendants."""
    inodes = {inode for one in (top, *_below(top)) for inode in _sockets(one)}
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == _LISTEN and rest[5] in inodes:
                found.add(_address(local, family))
    return found


def _address(text: str, family: socket.AddressFamily) -> str:
    """Return the address that the kernel prints as words of four bytes in the machine's byte order.

    >>> _address("0100007F:1F90", socket.AF_INET)
    '127.0.0.1:8080'
    """
    words, _, port = text.partition(":")
    data = b"".join(
        bytes.fromhex(words[at : at + 8])[:: -1 if sys.byteorder == "little" else 1] for at in range(0, len(words), 8)
    )
    return f"{socket.inet_ntop(family, data)}:{int(port, 16)}"


def _below(top: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{top}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, file.read_text().split()):
                found += [child, *_below(child)]
    return found


def _sockets(process: int) -> Iterator[str]:
    with suppress(OSError):
        for link in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                name = os.readlink(link)
                if name.startswith("socket:["):
                    yield name[8:-1]


# ---- files


def _files(folder: Path, full: bool) -> Iterator[Finding]:
    before = os.umask(0)
    try:
        crawl, secrets, lines = _crawl_with_secrets(folder / "files", full)
    finally:
        os.umask(before)
    files = [file for file in sorted(crawl.rglob("*")) if file.is_file()]
    holding = {file.relative_to(crawl).as_posix() for file in files if any(one in file.read_bytes() for one in secrets)}
    private = {"signals.db", "signals.db-wal", "signals.db-shm", "coordinator.json"}
    claim = "The secrets of a crawl are only in signals.db and coordinator.json, and on no command line."
    measured = f"{len(secrets)} secrets, {len(files)} files, {len(lines)} command lines; found in: {', '.join(sorted(holding))}"
    revealing = [line for line in lines if any(one in line for one in secrets)]
    yield Finding(claim, measured, bool(holding) and holding <= private and not revealing)
    modes = {file.name: file.stat().st_mode & 0o777 for file in files if file.name in private}
    claim = "Only their owner can read these files, even with the umask 000."
    measured = ", ".join(f"{name} {mode:o}" for name, mode in sorted(modes.items()))
    yield Finding(claim, measured, len(modes) >= 3 and not any(mode & 0o077 for mode in modes.values()))


class _Crawled(NamedTuple):
    folder: Path
    secrets: list[bytes]
    command_lines: list[bytes]


def _crawl_with_secrets(folder: Path, full: bool) -> _Crawled:
    """Make a crawl of two processes with a subscription, and copy it while it runs. The short form runs no process."""
    folder.mkdir()
    if not full:
        crawl = crawl_of(folder / "crawl", ["http://a.test/"])
        return _Crawled(crawl, _subscribed(crawl), [])
    with (
        served(folder, latency_s=0.2) as (_, options),
        _running("crawl", "--quiet", *options, "-o", folder / "crawl", "--processes", "2") as process,
    ):
        crawl = folder / "crawl"
        _once(lambda: _has_begun(process, crawl))
        secrets = [json.loads((crawl / "coordinator.json").read_text())["token"].encode(), *_subscribed(crawl)]
        lines = [Path(f"/proc/{one}/cmdline").read_bytes() for one in (process.pid, *_below(process.pid))]
        kept = folder / "kept"  # a copy from while the crawl ran
        subprocess.run(["cp", "-a", crawl, kept], check=True)
        return _Crawled(kept, secrets, lines)


_left_open: list[Subscriptions] = []  # so that the files beside the database stay


def _subscribed(crawl: Path) -> list[bytes]:
    subscriptions = Subscriptions(crawl)
    subscriptions.want("http://a.test/feed", "https://hub.test/", time.time())
    _left_open.append(subscriptions)
    return [one.secret.encode() for one in subscriptions.all()]


# ---- text


def _text(folder: Path, full: bool) -> Iterator[Finding]:
    place, page = folder / "text", folder / "report.html"
    with hostile_site() as server:
        home = f"http://{ADDRESS}:{server.port}/"
        options = ("--allow-private", "--delay", "0", "--backoff", "0", "--retries", "0", "-o", place)
        drawn = _on_a_terminal("crawl", home, *options)
    inbox, subscriptions = Inbox(place), Subscriptions(place)
    subscriptions.want(f"{home}hub", "https://hub.test/", 0.0)
    subscriptions.denied(subscriptions.all()[0], HOSTILE)
    for one in (inbox, subscriptions):
        one.close()
    commands: list[tuple[object, ...]] = [("refresh", "subscribe", place)]
    if full:
        commands += [
            ("status", place),
            ("status", place, "--json"),
            ("explain", place, home),
            ("explain", place, home + "moved"),
        ]
        commands += [
            ("explain", place, home + HOSTILE),
            ("explain", place, f"{ADDRESS}:{server.port}"),
        ]
        commands += [
            ("report", place, "-o", page),
            ("graph", "convert", place, "-o", folder / "graph", "--to", "edges"),
        ]
    printed = [_OWN_CONTROLS.sub("", drawn), *(_printed(*one) for one in commands)]
    wrong = [text for text in printed if not is_harmless(text)]
    claim = "Text from a hostile site or hub reaches the terminal only in escaped form."
    count = f"{len(printed)} commands, {sum(map(len, printed)):,} characters"
    measured = f"{len(server.log)} answers of the site; {count}, {len(wrong)} with unescaped text"
    yield Finding(claim, measured, not wrong and len(server.log) > 8 and any("owned" in text for text in printed))
    if full:
        files = [page, place / "summary.json", *sorted((folder / "graph").glob("*.t*"))]
        texts = {file.name: file.read_text().replace("\t", " ") for file in files}
        bad = [name for name, text in texts.items() if not is_harmless(text) or "<script>alert" in text]
        claim = "Such text reaches the HTML report, JSON and lists of URLs only in escaped form."
        yield Finding(claim, f"{', '.join(texts)}: {len(bad)} with unescaped text", not bad and len(texts) == 4)


def _on_a_terminal(*arguments: object) -> str:
    """Return everything that a command writes to its terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([*_TRAPLINE, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        written = b""
        end = time.monotonic() + _LONG_S
        with suppress(OSError):  # the command has ended
            while time.monotonic() < end:
                if select.select([ours], [], [], 1.0)[0]:
                    written += os.read(ours, 65_536)
        process.terminate()
    os.close(ours)
    return written.decode()


def _printed(*arguments: object) -> str:
    done = subprocess.run([*_TRAPLINE, *map(str, arguments)], capture_output=True, timeout=_LONG_S)
    return (done.stdout + done.stderr).decode()


# ---- dependencies


def _dependencies(full: bool) -> Iterator[Finding]:
    packages = [
        one for one in tomllib.loads((ROOT / "uv.lock").read_text())["package"] if "editable" not in one["source"]
    ]
    loose = [
        one["name"]
        for one in packages
        if not _files_of(one) or any("sha256:" not in file["hash"] for file in _files_of(one))
    ]
    claim = "uv.lock pins every dependency, with a SHA-256 of every file."
    yield Finding(
        claim,
        f"{len(packages)} packages, {sum(len(_files_of(one)) for one in packages)} files, {len(loose)} packages without a hash",
        not loose,
    )
    pinned: dict[str, set[str]] = {}  # more than one version, if it depends on Python
    for one in packages:
        pinned.setdefault(one["name"], set()).add(one["version"])
    installed = {_plain(one.metadata["Name"]): one.version for one in importlib.metadata.distributions()}
    both = sorted(pinned.keys() & installed.keys())
    other = [f"{name} {installed[name]}" for name in both if installed[name] not in pinned[name]]
    claim = "The installed versions are those in the lock file."
    yield Finding(
        claim,
        f"{len(both)} packages; {len(other)} differ{': ' if other else ''}{', '.join(other)}",
        bool(both) and not other,
    )
    if full:
        yield _audit()


def _files_of(package: dict[str, Any]) -> list[dict[str, str]]:
    return [*([package["sdist"]] if "sdist" in package else []), *package.get("wheels", [])]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _audit() -> Finding:
    claim = "pip-audit knows of no vulnerability in the installed packages."
    try:
        importlib.metadata.version("pip-audit")
        socket.create_connection(("pypi.org", 443), 5.0).close()
    except importlib.metadata.PackageNotFoundError:
        return Finding(
            claim, "pip-audit is not installed; to try it: uv run --with pip-audit python -m tests.proof surfaces", None
        )
    except OSError as error:
        return Finding(claim, f"the database of pip-audit cannot be reached from this machine ({error})", None)
    done = subprocess.run([sys.executable, "-m", "pip_audit", "--local"], capture_output=True, text=True)
    return Finding(claim, (done.stderr or done.stdout).strip().splitlines()[-1], done.returncode == 0)


# ---- commands


@contextmanager
def _running(*arguments: object, cwd: Path | None = None) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a command until the block ends. Then send Ctrl-C twice and kill it."""
    pipe, command = subprocess.DEVNULL, [*_TRAPLINE, *map(str, arguments)]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, stdin=pipe, cwd=cwd) as process:
        killing = threading.Timer(_LONG_S, process.kill)
        killing.start()
        try:
            yield process
        finally:
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(20.0)
            process.kill()
            killing.cancel()


def _once(look: Callable[[], Found]) -> Found:
    """Return the first result that is not empty."""
    end = time.monotonic() + _LONG_S
    while not (found := look()):
        if time.monotonic() > end:
            raise TimeoutError("what was waited for did not come")
        time.sleep(0.05)
    return found


SECTION = Section("Interfaces to the outside", _METHOD, run)
