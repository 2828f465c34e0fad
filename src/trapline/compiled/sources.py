"""The source files of compiled code: files with compiled functions, and all files that they import, directly or indirectly.

A compiled function contains functions and constants of other files, and numba notices no edit there. The name of the
cache folder (jit.py) is therefore a hash of these files. This module knows nothing about numba. It reads Python as
text, because every process does this at its start, and parsing would be slow.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_COMPILES = re.compile(rb"@(?:jit\.)?(?:kernel|helper|shared|page_rank|site_rank|rule)\b")
_COMMENT = re.compile(rb"#.*")
_IMPORT = re.compile(rb"from (trapline[\w.]*) import (\([^)]*\)|.*)")
_WHOLE = re.compile(rb"import (trapline[\w.]*)")
_NAME = re.compile(r"([\w*]+)(?: as (\w+))?")

Texts = dict[str, bytes]  # the texts of all files by their path in the package
Wanted = tuple[str, str]  # a file, and a name that it re-exports; ALL: everything in it
ALL = "*"


def compiled_sources(package: Path) -> Texts:
    """Return the files that compiled code can be made of."""
    texts = {path.relative_to(package).as_posix(): path.read_bytes() for path in package.rglob("*.py")}
    waiting = [(file, ALL) for file, text in texts.items() if _COMPILES.search(text)]
    found = set(waiting)
    while waiting:
        new = set(_leads_to(*waiting.pop(), texts)) - found
        found |= new
        waiting += new
    return {file: texts[file] for file in sorted({file for file, _ in found})}


def _leads_to(file: str, name: str, texts: Texts) -> Iterator[Wanted]:
    for module, original, own in _imports(texts[file]):
        if name in (ALL, own):
            yield from _homes(module, original, texts)


def _homes(module: str, name: str, texts: Texts) -> Iterator[Wanted]:
    """Yield the files in which an imported name is looked up. A name that a package only re-exports does not import the whole package."""
    file, inner = _file(module, texts), _file(f"{module}.{name}", texts)
    if inner:
        yield inner, ALL
    if file:
        is_reexported = file.endswith("__init__.py") and name in (own for _, _, own in _imports(texts[file]))
        yield file, name if is_reexported or inner else ALL


def _imports(text: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield all imports of Trapline in a file, also those in functions: the module, the name there, the name here."""
    for module, names in _IMPORT.findall(text):
        for name, own in _NAME.findall(_COMMENT.sub(b"", names).decode()):
            yield module.decode(), name, own or name
    for module in _WHOLE.findall(text):
        yield module.decode(), ALL, ALL


def _file(module: str, texts: Texts) -> str:
    """Return the file of a module; "" if there is none."""
    place = "/".join(module.split(".")[1:])
    return next((file for file in (f"{place}.py", f"{place}/__init__.py".lstrip("/")) if file in texts), "")
