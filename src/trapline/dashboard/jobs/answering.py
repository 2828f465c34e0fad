"""What all jobs do: compute an answer, and write it or the error to standard output as JSON."""

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
