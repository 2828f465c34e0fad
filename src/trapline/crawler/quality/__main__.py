"""`python -m trapline.crawler.quality SOURCE FOLDER`: the process that scores pages (scorer_pool.py starts it). Not for users.

It reads batches of pages from stdin and writes their scores to stdout, until stdin ends. Frames: the length of a pickle in eight
bytes, then the pickle. The first frame that it writes says "" or why there is no scorer.
"""

import os
import pickle
import sys
from contextlib import suppress
from typing import Any, BinaryIO

from trapline.crawler.handler.page import Page
from trapline.crawler.quality.scorer_pool import LENGTH, Scored
from trapline.crawler.quality.scorers import Scorer, checked, scorer_of
from trapline.errors import ConfigError
from trapline.terminal import guard_stderr

_MOST_CHARACTERS = 1000  # of an error in crawl.log


def main(source: str, folder: str) -> None:
    frames, output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What the user's code reads, or a process that it starts, must not be the frames; what it prints must not get between them.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    try:
        scorer = scorer_of(source, folder)
    except ConfigError as error:
        _write(output, str(error))
        return
    _write(output, "")
    while head := frames.read(LENGTH.size):
        fetches = pickle.loads(frames.read(LENGTH.unpack(head)[0]))  # of the crawl's own process
        _write(output, _scored(scorer, [Page(fetch) for fetch in fetches]))


def _scored(scorer: Scorer, pages: list[Page]) -> list[Scored]:
    """Score the pages together; if that fails, one by one, so that the error is that of the page which causes it."""
    try:
        return [Scored(score) for score in checked(scorer(pages), len(pages))]
    except (Exception, SystemExit) as error:
        if len(pages) > 1:
            return [one for page in pages for one in _scored(scorer, [page])]
        return [Scored(0.0, _line(error))]


def _line(error: BaseException) -> str:
    with suppress(Exception):  # of an exception whose text raises another one
        return f"{type(error).__name__}: {' '.join(str(error)[:_MOST_CHARACTERS].split())}"
    return type(error).__name__


def _write(output: BinaryIO, answer: Any) -> None:
    data = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    output.write(LENGTH.pack(len(data)) + data)
    output.flush()


if __name__ == "__main__":
    guard_stderr()
    with suppress(BrokenPipeError):  # the crawl was killed
        main(sys.argv[1], sys.argv[2])
