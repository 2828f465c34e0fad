"""Compiles the core and the kernels of the tests before the tests run: `python -m tests.warmup`.

Every test process would otherwise compile the helpers of these kernels again, which takes half a minute. Compiles in one
process per core, as `trapline warmup` does.
"""

from importlib import import_module

from trapline.cli.terminal.progress import Progress
from trapline.cli.warmup import compile_all

MODULES = (
    "tests.test_array_handles",
    "tests.simulator.test_link",
    "tests.parallel.test_url_exchange",
    "tests.crawler.test_hashing",
)


def main() -> None:
    for name in MODULES:
        import_module(name)
    with Progress("compiling", plain_every_s=10.0) as progress:
        compile_all(progress.update)


if __name__ == "__main__":
    main()
