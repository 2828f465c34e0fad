"""Which files compiled code is made of: those that have functions compiled, and all that they import, near or far.

A compiled function holds the functions and the constants of other files that it names, and numba notices no edit there. So the
name of the cache (jit.py) is a hash of these files. Knows nothing of numba; reads Python as text, because every process does.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_COMPILES = re.compile(rb"@(?:jit\.)?(?:kernel|helper|shared|page_rank|site_rank|rule)\b")
_COMMENT = re.compile(rb"#.*")
_IMPORT = re.compile(rb"from (trapline[\w.]*) import (\([^)]*\)|.*)")
_WHOLE = re.compile(rb"import (trapline[\w.]*)")
_NAME = re.compile(r"([\w*]+)(?: as (\w+))?")

Texts = dict[str, bytes]  # of all files, by their path in the package
Wanted = tuple[str, str]  # a file, and a name that it hands on; ALL: whatever is in it
ALL = "*"


def compiled_sources(package: Path) -> Texts:
    """The files that compiled code can be made of."""
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
    """Where a name is looked for. To import a name from a package that only hands it on is not to import all of the package."""
    file, inner = _file(module, texts), _file(f"{module}.{name}", texts)
    if inner:
        yield inner, ALL
    if file:
        is_handed_on = file.endswith("__init__.py") and name in (own for _, _, own in _imports(texts[file]))
        yield file, name if is_handed_on or inner else ALL


def _imports(text: bytes) -> Iterator[tuple[str, str, str]]:
    """All that is imported from Trapline, late imports too: the module, the name there, the name here."""
    for module, names in _IMPORT.findall(text):
        for name, own in _NAME.findall(_COMMENT.sub(b"", names).decode()):
            yield module.decode(), name, own or name
    for module in _WHOLE.findall(text):
        yield module.decode(), ALL, ALL


def _file(module: str, texts: Texts) -> str:
    """The file of a module; empty: there is none."""
    place = "/".join(module.split(".")[1:])
    return next((file for file in (f"{place}.py", f"{place}/__init__.py".lstrip("/")) if file in texts), "")
