"""A job: explains a page or a site, as `trapline explain` does."""

import sys
from pathlib import Path
from typing import Any

from trapline.dashboard.jobs import answer_with
from trapline.report.explanation import SilentProgress, explanation


def explain(folder: str, what: str) -> dict[str, Any]:
    return {"lines": explanation(Path(folder), what, SilentProgress())}


if __name__ == "__main__":
    sys.exit(answer_with(explain))
