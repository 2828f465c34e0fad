"""Foreign text reaches the terminal in one way only, which escapes characters that do not print. Nothing in the package
prints in another way."""

import ast
import asyncio
import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import trapline
from tests.hostile_text import ADDRESS, FORGED, HOSTILE, hostile_site, is_harmless
from tests.signals.crawled import crawl_of
from tests.signals.test_websub import PUBLIC, hub_on, subscribed
from trapline.cli import run
from trapline.crawler.engine.options import CrawlOptions
from trapline.parallel.folder.manifest import create
from trapline.parallel.live.control import announced
from trapline.parallel.partition import Partitioning
from trapline.parallel.transport import wire
from trapline.terminal import clear, escaped, redraw, rewrite_line, say_to

PACKAGE = Path(trapline.__file__).parent
TRAPLINE = [sys.executable, "-c", "from trapline.cli import main; main()"]
Captured = pytest.CaptureFixture[str]


# ---- escaping


def test_every_character_that_does_not_print_is_escaped() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    shown = escaped(everything)
    assert shown.isprintable()
    assert set(shown) == {one for one in everything if one.isprintable()}
    shown.encode()  # also lone surrogates, as in names of files


def test_json_stays_the_same_json() -> None:
    value = {HOSTILE: [HOSTILE, "\ud800"]}
    assert json.loads(escaped(json.dumps(value))) == value
    assert json.loads(escaped(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE
    beyond = "\U000e0001\U0001fffe\U0010ffff"
    assert escaped(beyond[0]) == "\\udb40\\udc01"
    assert json.loads(escaped(json.dumps(beyond, ensure_ascii=False))) == beyond


@pytest.mark.parametrize(
    "show, own",
    [
        (lambda stream: say_to(stream, HOSTILE, "x"), "{}\nx\n"),
        (lambda stream: rewrite_line(stream, HOSTILE), "\r{}\x1b[K"),
        (lambda stream: redraw(stream, [HOSTILE], 2), "\r\x1b[2A{}\x1b[K\n\x1b[J"),
        (clear, "\x1b[H\x1b[J"),
    ],
)
def test_only_our_own_control_characters_reach_the_terminal(show: Callable[[io.StringIO], None], own: str) -> None:
    stream = io.StringIO()
    show(stream)
    assert stream.getvalue() == own.format(escaped(HOSTILE))


# ---- nothing bypasses it


def dotted(node: ast.AST) -> str:
    """`sys.stderr.write` if the node is such a chain of names, or the part of it that is one."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def prints(source: str) -> Iterator[str]:
    """Calls and names in a source that could write to the terminal, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and _WAYS.match(dotted(node)):
            yield dotted(node)
        elif isinstance(node, ast.Name) and node.id in ("print", "secho"):
            yield node.id
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{one.name}" for one in node.names]
            yield from filter(_WAYS.match, names)
        elif isinstance(node, ast.Call) and dotted(node.func) == "os.write" and ast.unparse(node.args[0]) in "12":
            yield "os.write"


_WAYS = re.compile(
    r"click\.(echo|secho|style|echo_via_pager)$|sys\.(stdout|stderr)$|sys\.(stdout|stderr)\.(write|writelines|buffer)$|"
    r"sys\.__std|traceback\.print_|logging\.(StreamHandler|basicConfig)$|warnings\.warn$"
)
# The modules that may name a stream: to ask whether it is a terminal, or to pass it to `trapline.terminal`.
ASKERS = {
    "cli/crawl/view.py": {"sys.stderr"},
    "cli/terminal/progress.py": {"sys.stderr"},
    "cli/refresh/serve.py": {"sys.stderr", "sys.stdout"},
    "cli/crawl/status_command.py": {"sys.stdout"},
    "cli/testweb/command.py": {"sys.stderr"},
    "parallel/ray/joining.py": {"sys.stderr"},
    "testweb/server/__main__.py": {"sys.stdout", "sys.stdout.buffer"},  # a pipe to its parent
}
SOURCES = {str(file.relative_to(PACKAGE)): file for file in sorted(PACKAGE.rglob("*.py"))}


def test_only_the_terminal_module_prints() -> None:
    found = {name: set(prints(file.read_text(encoding="utf-8"))) for name, file in SOURCES.items()}
    round_it = {name: names - ASKERS.get(name, set()) for name, names in found.items() if name != "terminal.py"}
    assert {name: names for name, names in round_it.items() if names} == {}
    assert {
        name: ASKERS[name] - found[name] for name in ASKERS if ASKERS[name] - found[name]
    } == {}  # no module is listed needlessly


def test_no_command_writes_to_a_stream_directly() -> None:
    """Files are written by `trapline.output`, streams by `trapline.terminal`; a help formatter of click writes to neither."""
    for name, file in SOURCES.items():
        if name.startswith("cli/"):
            nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
            writing = [node.attr for node in attributes if ast.unparse(node.value) != "formatter"]
            assert not {"write", "writelines"}.intersection(writing), name


@pytest.mark.parametrize(
    "source",
    [
        "print(1)",
        "import click\nclick.echo(1)",
        "from click import echo",
        "import sys\nsys.stderr.write('x')",
        "import sys\nout = sys.stdout",
        "import sys\nsys.__stdout__.write('x')",
        "import traceback\ntraceback.print_exc()",
        "import os\nos.write(2, b'x')",
        "show = print",
    ],
)
def test_other_ways_to_print_are_found(source: str) -> None:
    assert list(prints(source))


def test_output_of_python_itself_is_escaped() -> None:
    """An uncaught exception, one in a thread, a warning, and a log line. Our own control characters still arrive."""
    script = (
        "import logging, sys, threading, warnings; from trapline.terminal import guard_stderr, rewrite_line; guard_stderr()\n"
        f"hostile = {HOSTILE!r}\n"
        "logging.getLogger('x').error(hostile); warnings.warn(hostile)\n"
        "def fail(): raise ValueError(hostile)\n"
        "one = threading.Thread(target=fail); one.start(); one.join()\n"
        "rewrite_line(sys.stderr, 'own'); fail()"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    printed = ended.stderr.decode()
    assert ended.returncode == 1 and printed.count("owned") >= 4
    assert printed.count("\rown\x1b[K") == 1
    printed = printed.replace("\rown\x1b[K", "")
    assert all(one.isprintable() or one == "\n" for one in printed)


# ---- foreign text


def test_the_answer_of_a_hub_is_escaped(tmp_path: Path, capsys: Captured) -> None:
    with subscribed(tmp_path, active=False) as (one, hub, _):
        crawl_of_signals = crawl_of(tmp_path / "crawl", [one.url("a.test")])
        query = urlencode({"hub.mode": "denied", "hub.topic": hub.requests[-1]["hub.topic"], "hub.reason": HOSTILE})
        assert one.ask("GET", f"{hub.callback()}?{query}").status == 200
        for name in ("signals.db", "signals.db-wal"):
            (crawl_of_signals / name).write_bytes((tmp_path / name).read_bytes())
        capsys.readouterr()
        assert run(["refresh", "subscribe", str(crawl_of_signals)]) == 0
        printed = capsys.readouterr().out
        assert "denied" in printed and "owned" in printed and is_harmless(printed) and printed.count("\n") == 1


def test_the_refusal_of_a_hub_is_escaped(tmp_path: Path, capsys: Captured) -> None:
    """By the two real commands: the endpoint contacts the hub, and a second terminal shows the result."""
    with hub_on() as hub:
        hub.status, hub.body = 500, HOSTILE.encode()
        topic, where = "http://a.test/feed", f"http://127.9.0.2:{hub.port}/"
        folder = crawl_of(tmp_path / "crawl", [topic])
        from trapline.signals.inbox import Inbox

        inbox = Inbox(folder)
        inbox.topic(topic, where)
        inbox.close()
        command = [*TRAPLINE, "refresh", "serve", str(folder), "--listen", "127.0.0.1:0", "--json", "--allow-private"]
        with subprocess.Popen([*command, "--public-url", PUBLIC], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline()
            printed = ""
            while "500" not in printed and process.poll() is None:
                assert run(["refresh", "subscribe", str(folder)]) == 0
                printed = capsys.readouterr().out
            process.terminate()
        assert "the hub answered 500" in printed and "owned" in printed and is_harmless(printed)


def test_text_of_a_hostile_site_is_escaped(tmp_path: Path, capsys: Captured) -> None:
    """The lines of the crawl itself, then status, explain and the page of the report."""
    folder, page = tmp_path / "crawl", tmp_path / "report.html"
    with hostile_site() as server:
        home = f"http://{ADDRESS}:{server.port}/"
        options = ("--allow-private", "--delay", "0", "--backoff", "0", "--retries", "0", "-o", str(folder))
        assert run(["crawl", home, *options]) == 0
    assert len(server.log) > 8
    assert run(["status", str(folder)]) == run(["status", str(folder), "--json"]) == 0
    assert run(["explain", str(folder), home]) == run(["explain", str(folder), f"{home}moved"]) == 0
    assert run(["explain", str(folder), f"{home}{HOSTILE}"]) == 2
    assert run(["report", str(folder), "-o", str(page)]) == 0
    printed = "".join(capsys.readouterr())
    assert printed.count(home) > 5 and is_harmless(printed), printed
    assert is_harmless(page.read_text()) and "<script>alert" not in page.read_text()


@contextmanager
def coordinator(folder: Path, serve: Callable[[wire.SecureStream], Any]) -> Iterator[None]:
    """A peer that knows the token of the crawl in this folder."""
    create(folder, CrawlOptions(("http://a.test/",)), Partitioning("address", 2))
    loop, own = asyncio.new_event_loop(), wire.Pass("c", b"t", -1)

    async def served(line: wire.SecureStream) -> None:
        await line.receive()
        serve(line)
        await line.drain()

    _, address = loop.run_until_complete(wire.listen("127.0.0.1", own, served))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        with announced(folder, "c", "t", address):
            yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


PARTITION = {"partition": 0, "pages": 1, "pages_per_second": 1.0, "pages_refetched": 0, "waiting": 0, "since": 0.0}
PARTITION |= {"batches_made": 0, "batches_received": 0, "alive": True, "host": HOSTILE}


@pytest.mark.parametrize(
    "answer, code",
    [({"partitions": [PARTITION], "doing": HOSTILE, "seconds": 1.0}, 0), ({"refused": HOSTILE}, 2)],
)
def test_text_of_a_peer_is_escaped(tmp_path: Path, answer: object, code: int, capsys: Captured) -> None:
    def serve(line: wire.SecureStream) -> None:
        line.send(wire.FrameKind.ORDER, json.dumps(answer).encode())

    with coordinator(tmp_path / "c", serve):
        assert run(["parallel", "status", str(tmp_path / "c")]) == code
    printed = "".join(capsys.readouterr())
    assert "owned" in printed and FORGED in printed and is_harmless(printed)


_SHOWS = "import sys; from trapline.terminal import rewrite_line, say; rewrite_line(sys.stderr, 'progress'); say('done', err=True)"
_STARTS = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], process_group={})"


@pytest.mark.parametrize(("group", "is_shown"), [("None", True), ("0", False)])
def test_a_command_in_the_background_rewrites_no_line_of_its_terminal(group: str, is_shown: bool) -> None:
    """A process group of its own is in the background, until a shell makes it the terminal's."""
    process, terminal = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, "-c", _STARTS.format(group), _SHOWS])
    shown = b""
    with suppress(OSError):  # Linux: the other end is closed
        while piece := os.read(terminal, 4096):
            shown += piece
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    assert b"done" in shown and (b"progress" in shown) == is_shown


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_whose_streams_are_closed_runs(closed: str, tmp_path: Path) -> None:
    graph = tmp_path / "graph"
    words = [sys.executable, "-c", "from trapline.cli import main; main()", "graph", "generate", "--pages", "9"]
    words += ["--sites", "3", "-o", str(graph)]
    done = subprocess.run(f"{shlex.join(words)} {closed}", shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "defect" not in done.stderr and (graph / "graph.json").exists()
