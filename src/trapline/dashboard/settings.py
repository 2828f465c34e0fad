"""The settings of a dashboard, and its start as a process that gets them. This module imports nothing that takes time."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trapline.errors import ConfigError

TOKEN_VARIABLE = "TRAPLINE_TOKEN"
# Arguments of Python; -P: import nothing from the user's working directory
_COMMAND = (sys.executable, "-P", "-m", "trapline.dashboard")


@dataclass(frozen=True)
class DashboardSettings:
    folders: tuple[str, ...]
    listen: tuple[str, int] | None = None  # of the pages; None: there are none
    metrics: tuple[str, int] | None = None  # of the metrics alone
    token: str = ""  # "": none is needed on loopback; elsewhere one is made
    allow_hosts: tuple[str, ...] = ()
    read_only: bool = False
    option: str = "--listen"  # of the command, for messages

    def to_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "DashboardSettings":
        found: dict[str, Any] = json.loads(line)
        for name in ("listen", "metrics"):
            found[name] = tuple(found[name]) if found[name] else None
        return cls(**{**found, "folders": tuple(found["folders"]), "allow_hosts": tuple(found["allow_hosts"])})


def start(settings: DashboardSettings) -> "subprocess.Popen[bytes]":
    """Start a dashboard (`__main__.py`) as a process of its own. It ends when its standard input is closed."""
    # A process group of its own: Ctrl-C stops the crawl, and the dashboard shows how it ends.
    process = subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)
    assert process.stdin is not None
    process.stdin.write(settings.to_line())
    process.stdin.flush()
    return process


def read_token(file: Path | None) -> str:
    """Return the token of a file or of the environment; "": there is none."""
    if file is None:
        token, named = os.environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
        if not token:
            return ""
    else:
        named = f"--token-file {file}"
        try:
            token = file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not plain ASCII text"
            raise ConfigError(f"{named}: cannot be read: {why}") from None
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{named}: not a valid token; use 16 or more printable characters without spaces")
    return token
