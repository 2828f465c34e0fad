"""Measures commands whose kernels are compiled and cached: python bench/warm_start.py [--rounds N] [--trapline PROGRAM]

Prints the median processor time of all processes together, and the median time of the clock, of a crawl of one page from a server on
this machine, of the same crawl in two processes, and of a simulated crawl of 100 pages; then, for each process of the last
round, its processor time, the number of modules that it has imported, and whether numba is one of them. Each command runs once before, so
that its kernels and the bytecode of its modules are there.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

from start import Site

# Python imports this module at its start, in each process of a command.
NOTES_AT_EXIT = """
import atexit, json, os, sys

def note():
    used = os.times()
    found = {"words": sys.argv[:3], "processor_s": used.user + used.system, "modules": len(sys.modules), "numba": "numba" in sys.modules}
    with open(os.path.join(os.environ["BENCH_NOTES"], f"{os.getpid()}.json"), "w") as file:
        json.dump(found, file)

atexit.register(note)
"""


def run(command: list[str], work: Path) -> tuple[float, float, list[dict[str, object]]]:
    """Run a command. Return its processor time, the time of the clock, and what its processes noted."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        environment = {**os.environ, "PYTHONPATH": str(work), "BENCH_NOTES": str(notes)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or each process would compile all sources of Trapline
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
        clock_s = time.perf_counter() - started
        if done.returncode:
            sys.exit(f"{command}: {done.stderr}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return processor_s, clock_s, [json.loads(file.read_text()) for file in sorted(notes.iterdir())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: %(default)s")
    parser.add_argument("--trapline", default=str(Path(sys.executable).with_name("trapline")), metavar="PROGRAM")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as temporary,
        ThreadingHTTPServer(("127.0.0.1", 0), Site) as server,
    ):
        (Path(temporary) / "sitecustomize.py").write_text(NOTES_AT_EXIT)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        crawl = [
            "crawl",
            f"http://127.0.0.1:{server.server_port}/",
            "--allow-private",
            "--max-pages",
            "1",
            "-o",
            "crawl",
        ]
        for name, words in (
            ("crawl of one page", crawl),
            ("the same, --processes 2", [*crawl, "--processes", "2"]),
            ("simulate, 100 pages", ["simulate", "python-docs", "--strategy", "breadth-first", "--max-pages", "100"]),
        ):
            command = [given.trapline, *words]
            run(command, Path(temporary))
            rounds = [run(command, Path(temporary)) for _ in range(given.rounds)]
            processor_s, clock_s = (statistics.median(each[place] for each in rounds) for place in (0, 1))
            print(f"{name:26} processor {processor_s:5.2f} s   clock {clock_s:5.2f} s", flush=True)
            for note in rounds[-1][2]:
                numba = ", with numba" if note["numba"] else ""
                words_shown = " ".join(Path(word).name[:24] for word in note["words"])  # type: ignore[attr-defined]
                print(
                    f"    {note['processor_s']:5.2f} s {note['modules']:5} modules{numba}   {words_shown}", flush=True
                )
        server.shutdown()


if __name__ == "__main__":
    main()
