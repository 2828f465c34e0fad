"""Answers that need compiled code and much time: each is a process of its own, which writes JSON to its standard output.

    python -m trapline.dashboard.jobs.explain_url FOLDER URL
    python -m trapline.dashboard.jobs.quality_curve FOLDER
    python -m trapline.dashboard.jobs.refresh_view FOLDER

Each job passes its function to `answer_with`, which calls it with the words of the command line and writes its answer, or its error.
The server itself imports no compiled code. One job runs at a time, behind the crawl in priority, and its answer is kept for a while.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from trapline.dashboard.folder_reader import finite
from trapline.errors import ConfigError

Answer = Callable[..., dict[str, Any]]


def answer_with(answer: Answer) -> int:
    """Call `answer` with the words of the command line. Return the exit code."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answer
    try:
        found = answer(*sys.argv[1:])
    except ConfigError as error:
        found = {"error": str(error)}
    with out:
        json.dump(finite(found), out, allow_nan=False)
    return 0
