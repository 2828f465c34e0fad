"""Trapline's own graph folder: `graph.json` (version, counts, origin) and one .npy file per array.

The arrays are mapped, not read: a graph of 50 million links opens at once. Mapped copy-on-write, because compiled code
wants writable arrays. Values are checked on loading, since compiled code does not check bounds.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.graph import Graph, fault
from trapline.graph.strings import GeneratedSiteNames, GeneratedUrls, StoredStrings, Strings

NAME = "saved by trapline"
ACCEPTS = "graph.json + *.npy"
VERSION = 1

_ARRAYS: dict[str, type[np.generic]] = {
    "offsets": np.int64,
    "targets": np.int32,
    "site": np.int32,
    "home": np.int32,
    "dynamic": np.uint8,
    "ips": np.int32,
}


def detect(path: Path) -> bool:
    return (path / "graph.json").is_file()


def load(path: Path) -> Graph:
    head = _head(path / "graph.json")
    arrays: dict[str, Any] = {name: _array(path, name, dtype) for name, dtype in _ARRAYS.items()}
    sizes = _array(path, "sizes", np.int64) if head.get("sizes") else None
    urls, names = _urls(path, head, arrays), _site_names(path, head, arrays)
    graph = Graph(**arrays, urls=urls, site_names=names, sizes=sizes, origin=head.get("origin", {}))
    trouble = fault(graph) or _count_fault(graph, head)
    if trouble:
        raise ConfigError(f"{path}: not a sound graph: {trouble}")
    return graph


def save(graph: Graph, folder: Path | str, replace: bool = False) -> None:
    """Writes all or nothing. `replace` allows to replace a saved graph; nothing else is ever overwritten."""
    target = Path(folder)
    check_output(target, replace)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _beside(target) as fresh:
            _write(graph, fresh)
            _put(fresh, target)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror or error}") from None


def check_output(folder: Path, replace: bool = False) -> None:
    """Refuses at once what `save` would refuse after a long computation."""
    if folder.is_dir():
        if any(folder.iterdir()) and not (replace and detect(folder)):
            hint = "holds a saved graph (--replace replaces it)" if detect(folder) else "is not empty"
            raise ConfigError(f"{folder}: exists and {hint}")
    elif folder.exists() or folder.is_symlink():
        raise ConfigError(f"{folder}: exists and is not a folder")
    ancestor = next(parent for parent in folder.absolute().parents if parent.exists())
    if not ancestor.is_dir() or not os.access(ancestor, os.W_OK | os.X_OK):
        raise ConfigError(f"{folder}: cannot be written: no permission to write in {ancestor}")


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A folder on the same file system, so that a rename puts it in place; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        fresh = Path(scratch) / "graph"
        fresh.mkdir()
        yield fresh


def _put(fresh: Path, target: Path) -> None:
    if target.is_dir() and any(target.iterdir()):
        old = fresh.with_name("old")
        target.rename(old)
        try:
            fresh.rename(target)
        except BaseException:
            old.rename(target)  # what was there is worth more than nothing
            raise
        shutil.rmtree(old)
    else:
        fresh.rename(target)


def _write(graph: Graph, folder: Path) -> None:
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", getattr(graph, name))
    if graph.sizes is not None:
        np.save(folder / "sizes.npy", graph.sizes)
    head = {
        "format": "trapline graph",
        "version": VERSION,
        "pages": graph.pages,
        "links": graph.links,
        "sites": graph.sites,
        "sizes": graph.sizes is not None,
        "urls": _write_strings(graph.urls, folder, "urls"),
        "site_names": _write_strings(graph.site_names, folder, "site_names"),
        "origin": dict(graph.origin),
    }
    (folder / "graph.json").write_text(json.dumps(head, indent=1) + "\n", encoding="utf-8")


def _write_strings(strings: Strings | None, folder: Path, name: str) -> str | None:
    """How the strings can be had again: from two files, by computation, or not at all."""
    if strings is None:
        return None
    if isinstance(strings, GeneratedUrls | GeneratedSiteNames):
        return "generated"
    stored = (
        strings
        if isinstance(strings, StoredStrings)
        else StoredStrings.of(map(strings.__getitem__, range(len(strings))))
    )
    np.save(folder / f"{name}.ends.npy", stored.ends)
    np.save(folder / f"{name}.text.npy", stored.text)
    return "stored"


def _head(file: Path) -> dict[str, Any]:
    try:
        head = json.loads(file.read_bytes())
    except (ValueError, OSError, RecursionError) as error:
        raise ConfigError(f"{file}: {_json_trouble(error)}") from None
    if not isinstance(head, dict) or head.get("format") != "trapline graph":
        raise ConfigError(f"{file}, row 1: not the head of a graph saved by trapline")
    if head.get("version") != VERSION:
        raise ConfigError(f"{file}: version {head.get('version')!r}, this trapline reads version {VERSION}")
    if not isinstance(head.get("origin", {}), dict):
        raise ConfigError(f"{file}: its origin is not a table of names and values")
    return head


def _json_trouble(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"row {error.lineno}: not JSON: {error.msg}"
    return "not UTF-8" if isinstance(error, ValueError) else f"cannot be read: {error}"


def _array(folder: Path, name: str, dtype: type[np.generic]) -> NDArray[Any]:
    file = folder / f"{name}.npy"
    try:
        array = _mapped(file)
    except FileNotFoundError:
        raise ConfigError(f"{folder}: {file.name} is missing; it belongs to graph.json") from None
    except Exception as error:  # numpy's readers raise whatever a broken file leads them to
        raise ConfigError(
            f"{file}: not a complete .npy file: {(str(error).splitlines() or [type(error).__name__])[0]}"
        ) from None
    if array.dtype != dtype or array.ndim != 1:
        shape = "x".join(map(str, array.shape))
        raise ConfigError(f"{file}: {array.dtype} [{shape}], must be a list of {np.dtype(dtype)}")
    return array


def _mapped(file: Path) -> NDArray[Any]:
    try:
        # A plain array over the mapping: numpy's own subclass slows every access and confuses compiled signatures.
        mapped: NDArray[Any] = np.load(file, mmap_mode="c", allow_pickle=False)
    except ValueError:
        # An array without values cannot be mapped.
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
        raise ConfigError(f"{folder / name}.ends.npy: must rise to {len(text)}")
    return StoredStrings(ends, text)


def _count_fault(graph: Graph, head: dict[str, Any]) -> str | None:
    for name in ("pages", "links", "sites"):
        if head.get(name) != getattr(graph, name):
            return f"graph.json says {head.get(name)} {name}, the arrays have {getattr(graph, name)}"
    return None
