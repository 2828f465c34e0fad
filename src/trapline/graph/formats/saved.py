"""Trapline's own graph folder: `graph.json` (version, counts, origin) and one .npy file per array.

The arrays are mapped into memory, not read, so a graph of 50 million links opens at once. They are mapped copy-on-write,
because compiled code requires writable arrays. Values are checked on loading, because compiled code does not check bounds.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.formats.textfile import LoadOptions
from trapline.graph.graph import Graph, fault
from trapline.graph.strings import GeneratedSiteNames, GeneratedUrls, StoredStrings, Strings, stored

# ---- Atomic output of a graph folder: written to a temporary folder beside its place, then renamed.
#
# This part does not know what is written. An existing folder is replaced only on request, and only by one of its kind.

Strangers = Callable[[Path], list[str]]
"""Lists the files in a folder that do not belong to a graph of the kind that is to be written."""


def write_folder(folder: Path, write: Callable[[Path], None], strangers: Strangers, replace: bool) -> None:
    check_folder(folder, strangers, replace)
    target = Path(os.path.realpath(folder))  # a symbolic link stays and leads to the new graph
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _beside(target) as fresh:
            write(fresh)
            _put(fresh, target)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror or error}") from None


def check_folder(folder: Path, strangers: Strangers, replace: bool) -> None:
    """Raise the errors of `write_folder` early, before a long computation."""
    _restore(Path(os.path.realpath(folder)))
    if folder.is_dir():
        others = strangers(folder)
        if others:
            raise ConfigError(f"{folder}: exists and holds other files ({others[0]}); name a new or an empty folder")
        if any(folder.iterdir()) and not replace:
            raise ConfigError(f"{folder}: exists and holds a saved graph; use --replace to replace it")
    elif folder.exists() or folder.is_symlink():
        raise ConfigError(f"{folder}: exists and is not a folder; name another one")
    ancestor = next(parent for parent in folder.absolute().parents if parent.exists())
    if not ancestor.is_dir() or not os.access(ancestor, os.W_OK | os.X_OK):
        raise ConfigError(f"{folder}: cannot be written: no permission to write in {ancestor}")


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Make a temporary folder on the same file system as `target`, so that a rename can put it in place."""
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        fresh = Path(scratch) / "graph"
        fresh.mkdir()
        yield fresh


def _old(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def _restore(target: Path) -> None:
    """Move the old graph back if a process was killed between the two renames of `_put`."""
    if _old(target).is_dir() and not target.exists():
        _old(target).rename(target)


def _put(fresh: Path, target: Path) -> None:
    old = _old(target)
    try:
        if target.is_dir() and any(target.iterdir()):
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
        fresh.rename(target)
    except BaseException:  # including KeyboardInterrupt: the old graph must not be lost
        _restore(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


# ---- format saved

NAME = "saved by trapline"
ACCEPTS = "graph.json + *.npy"
OPTIONS: frozenset[str] = frozenset()
VERSION = 1
_AGAIN = "restore it from a copy, or generate or convert the graph again"

_ARRAYS: dict[str, type[np.generic]] = {
    "offsets": np.int64,
    "targets": np.int32,
    "site": np.int32,
    "home": np.int32,
    "dynamic": np.uint8,
    "ips": np.int32,
}


_FILES = {"graph.json", "sizes.npy", "quality.npy", *(f"{name}.npy" for name in _ARRAYS)} | {
    f"{name}.{part}.npy" for name in ("urls", "site_names") for part in ("ends", "text")
}


def strangers(folder: Path) -> list[str]:
    """List the files in a folder that do not belong to a saved graph; all files if the folder holds no graph."""
    names = sorted(file.name for file in folder.iterdir())
    return [name for name in names if name not in _FILES] if "graph.json" in names else names


def graph_of(file: Path, named: bool) -> Path | None:
    return file if file.name == "graph.json" else None


def load(file: Path, options: LoadOptions) -> Graph:
    path = file.parent
    head = _head(path / "graph.json")
    arrays: dict[str, Any] = {name: _array(path, name, dtype) for name, dtype in _ARRAYS.items()}
    sizes = _array(path, "sizes", np.int64) if head.get("sizes") else None
    quality = _array(path, "quality", np.float64) if head.get("quality") else None
    urls, names = _urls(path, head, arrays), _site_names(path, head, arrays)
    more = {"sizes": sizes, "quality": quality, "origin": head.get("origin", {})}
    graph = Graph(**arrays, urls=urls, site_names=names, **more)
    trouble = fault(graph) or _count_fault(graph, head)
    if trouble:
        raise ConfigError(f"{path}: not a valid graph: {trouble}")
    return graph


def save(graph: Graph, folder: Path | str, replace: bool = False) -> None:
    """Save a graph as a folder, completely or not at all.

    `replace` allows replacing a saved graph; nothing else is ever overwritten.
    """
    write_folder(Path(folder), lambda fresh: _write(graph, fresh), strangers, replace)


def check_output(folder: Path, replace: bool = False) -> None:
    """Raise the errors of `save` early, before a long computation."""
    check_folder(folder, strangers, replace)


def _write(graph: Graph, folder: Path) -> None:
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", getattr(graph, name))
    if graph.sizes is not None:
        np.save(folder / "sizes.npy", graph.sizes)
    if graph.quality is not None:
        np.save(folder / "quality.npy", graph.quality)
    head = {
        "format": "trapline graph",
        "version": VERSION,
        "trapline": version("trapline"),  # not trapline.__version__: every module would be a source of compiled code
        "pages": graph.pages,
        "links": graph.links,
        "sites": graph.sites,
        "sizes": graph.sizes is not None,
        "quality": graph.quality is not None,
        "urls": _write_strings(graph.urls, folder, "urls"),
        "site_names": _write_strings(graph.site_names, folder, "site_names"),
        "origin": dict(graph.origin),
    }
    (folder / "graph.json").write_text(json.dumps(head, indent=1) + "\n", encoding="utf-8")


def _write_strings(strings: Strings | None, folder: Path, name: str) -> str | None:
    """Write the strings if they cannot be computed; return how to load them: "stored", "generated" or None."""
    if strings is None:
        return None
    if isinstance(strings, GeneratedUrls | GeneratedSiteNames):
        return "generated"
    block = stored(strings)
    np.save(folder / f"{name}.ends.npy", block.ends)
    np.save(folder / f"{name}.text.npy", block.text)
    return "stored"


def _head(file: Path) -> dict[str, Any]:
    try:
        head = json.loads(file.read_bytes())
    except (ValueError, OSError, RecursionError) as error:
        raise ConfigError(f"{file}: {_json_trouble(error)}; {_AGAIN}") from None
    if not isinstance(head, dict) or head.get("format") != "trapline graph":
        raise ConfigError(f"{file}, row 1: not a graph saved by trapline")
    if head.get("version") != VERSION:
        raise ConfigError(f"{file}: version is {head.get('version')!r}, this trapline reads version {VERSION}")
    if not isinstance(head.get("origin", {}), dict):
        raise ConfigError(f"{file}: origin is not a JSON object")
    return head


def _json_trouble(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"row {error.lineno}: not JSON: {error.msg}"
    return "not UTF-8" if isinstance(error, ValueError) else f"cannot be read: {error}"


def _array(folder: Path, name: str, dtype: type[np.generic]) -> NDArray[Any]:
    file = folder / f"{name}.npy"
    if file.exists() and not file.is_file():
        raise ConfigError(f"{file}: not a file")
    try:
        array = _mapped(file)
    except FileNotFoundError:
        raise ConfigError(f"{folder}: {file.name} is missing; it belongs to graph.json") from None
    except Exception as error:  # numpy's readers raise many kinds of errors on a broken file
        raise ConfigError(
            f"{file}: not a complete .npy file: {(str(error).splitlines() or [type(error).__name__])[0]}; {_AGAIN}"
        ) from None
    if array.dtype != dtype or array.ndim != 1:
        shape = "x".join(map(str, array.shape))
        raise ConfigError(
            f"{file}: an array of {array.dtype} [{shape}]; it must be a one-dimensional array of {np.dtype(dtype)}"
        )
    return array


def _mapped(file: Path) -> NDArray[Any]:
    try:
        # Returned as a plain array: numpy's subclass memmap slows every access and does not match compiled signatures.
        mapped: NDArray[Any] = np.load(file, mmap_mode="c", allow_pickle=False)
    except ValueError:
        # An empty array cannot be mapped.
        mapped = np.load(file, allow_pickle=False)
    return mapped.view(np.ndarray)


def _urls(folder: Path, head: dict[str, Any], arrays: dict[str, Any]) -> Strings | None:
    if head.get("urls") == "generated":
        return GeneratedUrls(arrays["site"], arrays["home"], arrays["dynamic"])
    return _stored(folder, "urls") if head.get("urls") else None


def _site_names(folder: Path, head: dict[str, Any], arrays: dict[str, Any]) -> Strings | None:
    if head.get("site_names") == "generated":
        return GeneratedSiteNames(len(arrays["home"]))
    return _stored(folder, "site_names") if head.get("site_names") else None


def _stored(folder: Path, name: str) -> StoredStrings:
    ends, text = _array(folder, f"{name}.ends", np.int64), _array(folder, f"{name}.text", np.uint8)
    sound = len(ends) and ends[0] >= 0 and ends[-1] == len(text) and np.all(ends[1:] >= ends[:-1])
    if not sound:
        raise ConfigError(f"{folder / name}.ends.npy: values must ascend to {len(text)}")
    return StoredStrings(ends, text)


def _count_fault(graph: Graph, head: dict[str, Any]) -> str | None:
    for name in ("pages", "links", "sites"):
        if head.get(name) != getattr(graph, name):
            return f"graph.json says {head.get(name)} {name}, but the arrays have {getattr(graph, name)}"
    return None
