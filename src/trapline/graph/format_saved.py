"""Trapline's own graph folder: `graph.json` (version, counts, origin) and one .npy file per array.

The arrays are mapped, not read: a graph of 50 million links opens at once. Mapped copy-on-write, because compiled code
wants writable arrays. Values are checked on loading, since compiled code does not check bounds.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.folder import check_folder, write_folder
from trapline.graph.graph import Graph, fault
from trapline.graph.options import LoadOptions
from trapline.graph.strings import GeneratedSiteNames, GeneratedUrls, StoredStrings, Strings, stored

NAME = "saved by trapline"
ACCEPTS = "graph.json + *.npy"
OPTIONS: frozenset[str] = frozenset()
VERSION = 1

_ARRAYS: dict[str, type[np.generic]] = {
    "offsets": np.int64,
    "targets": np.int32,
    "site": np.int32,
    "home": np.int32,
    "dynamic": np.uint8,
    "ips": np.int32,
}


_FILES = {"graph.json", "sizes.npy", *(f"{name}.npy" for name in _ARRAYS)} | {
    f"{name}.{part}.npy" for name in ("urls", "site_names") for part in ("ends", "text")
}


def strangers(folder: Path) -> list[str]:
    """What is in a folder that is not of a saved graph; all of it, if there is none."""
    names = sorted(file.name for file in folder.iterdir())
    return [name for name in names if name not in _FILES] if "graph.json" in names else names


def graph_of(file: Path, named: bool) -> Path | None:
    return file if file.name == "graph.json" else None


def load(file: Path, options: LoadOptions) -> Graph:
    path = file.parent
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
    write_folder(Path(folder), lambda fresh: _write(graph, fresh), strangers, replace)


def check_output(folder: Path, replace: bool = False) -> None:
    """Refuses at once what `save` would refuse after a long computation."""
    check_folder(folder, strangers, replace)


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
    block = stored(strings)
    np.save(folder / f"{name}.ends.npy", block.ends)
    np.save(folder / f"{name}.text.npy", block.text)
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
    if file.exists() and not file.is_file():
        raise ConfigError(f"{file}: not a file")
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
