"""Where a reproduction goes: tables to the terminal or JSON, pictures into a folder. Checked before anything long is run."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from trapline.errors import ConfigError
from trapline.output import check_writable, write_json
from trapline.terminal import say_text

STDOUT = Path("-")
Found = TypeVar("Found")


def check_outputs(flag: str, folder: Path | None, picture: str, json_file: Path | None) -> None:
    """`flag`: what the folder was given by. `picture`: one that will be in it."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{flag} {folder}: {error.strerror}") from error
        check_writable(folder / picture)
    if json_file is not None and json_file != STDOUT:
        check_writable(json_file)


def put_out(
    found: Sequence[Found], show: Callable[[Found], None], json_file: Path | None, for_machines: Callable[[], Any]
) -> None:
    """JSON to a file, tables to the terminal; or JSON there instead."""
    if json_file == STDOUT:
        say_text(json.dumps(for_machines(), indent=1))
        return
    for one in found:
        show(one)
    if json_file is not None:
        write_json(json_file, for_machines())
