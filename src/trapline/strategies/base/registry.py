"""Registry of strategies: it finds them in the modules of the folder `strategies` and in a user's own file.

A new strategy needs one new file; there is no list to add it to.
"""

import importlib
import importlib.util
import pkgutil
import traceback
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TypeVar

from trapline.errors import ConfigError, nearest
from trapline.strategies.base.strategy import PageRank, SiteRank, Strategy

_FOLDER = Path(__file__).parent.parent
Declared = TypeVar("Declared", PageRank, SiteRank, Strategy)


@cache
def _modules() -> tuple[ModuleType, ...]:
    names = sorted(found.name for found in pkgutil.iter_modules([str(_FOLDER)]) if not found.ispkg)
    return tuple(importlib.import_module(f"trapline.strategies.{name}") for name in names)


def _declared(attribute: str, kind: type[Declared]) -> dict[str, Declared]:
    found = (getattr(module, attribute, None) for module in _modules())
    return {declared.name: declared for declared in found if isinstance(declared, kind)}


def page_ranks() -> dict[str, PageRank]:
    """Return all page ranks of Trapline by name."""
    return _declared("PAGE", PageRank)


def site_ranks() -> dict[str, SiteRank]:
    """Return all site ranks of Trapline by name."""
    return _declared("SITE", SiteRank)


def strategies() -> dict[str, Strategy]:
    """Return all strategies of Trapline by name."""
    return _declared("STRATEGY", Strategy)


def page_rank_named(name: str) -> PageRank:
    """Return a page rank by its name, or from a Python file that declares PAGE or STRATEGY."""
    return _half(name, "PAGE", PageRank, page_ranks())


def site_rank_named(name: str) -> SiteRank:
    """Return a site rank by its name, or from a Python file that declares SITE or STRATEGY."""
    return _half(name, "SITE", SiteRank, site_ranks())


def pair(page: str, site: str, name: str = "") -> Strategy:
    """Return a strategy of any page rank and any site rank, each by its name or from a file."""
    page_half, site_half = page_rank_named(page), site_rank_named(site)
    return Strategy(name or f"{page_half.name} x {site_half.name}", page_half, site_half)


def load_strategy(name: str) -> Strategy:
    """Return a strategy by its name, or from a Python file (a name that ends in .py) that declares STRATEGY."""
    if not _is_file(name):
        return _known(name, "strategy", strategies())
    strategy = getattr(_run(Path(name)), "STRATEGY", None)
    if not isinstance(strategy, Strategy):
        raise ConfigError(f"{name}: declares no strategy; add STRATEGY = Strategy(name, page rank, site rank)")
    return strategy


def _is_file(name: str) -> bool:
    return name.endswith(".py")


def _half(name: str, attribute: str, kind: type[Declared], known: dict[str, Declared]) -> Declared:
    """Return a page rank or a site rank, by its name in `known` or from a file."""
    half = attribute.lower()
    if not _is_file(name):
        return _known(name, f"{half} rank", known)
    module = _run(Path(name))
    found = getattr(module, attribute, None) or getattr(getattr(module, "STRATEGY", None), half, None)
    if not isinstance(found, kind):
        raise ConfigError(
            f"{name}: declares no {half} rank; add {attribute} = {kind.__name__}(name, function, ...), or a STRATEGY"
        )
    return found


def _known(name: str, label: str, known: dict[str, Declared]) -> Declared:
    if name not in known:
        file = f"{name}.py"
        hint = f"for the file here, give {file}" if Path(file).is_file() else nearest(name, known)
        raise ConfigError(f"no {label} {name!r}; {hint}")
    return known[name]


class _SourceLoader(SourceFileLoader):
    """Loads a module from its source, never from bytecode, which may be that of an earlier edit within the same second."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _run(path: Path) -> ModuleType:
    """Run the user's file as a module. Any error that it raises becomes a ConfigError, because the user must correct it."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such strategy file; give the path of a Python file, or the name of a strategy")
    name = f"user_strategy_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceLoader(name, str(path.absolute())))
    assert spec is not None and spec.loader is not None  # a path and a loader always give these
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise ConfigError(f"{path}{_row(error, path)}: cannot be loaded: {what}; correct the file") from error
    return module


def _row(error: BaseException, path: Path) -> str:
    """Return the row of the user's file in which the error arose. A SyntaxError names its own row."""
    if isinstance(error, SyntaxError):
        return ""
    rows = [
        entry.lineno for entry in traceback.extract_tb(error.__traceback__) if Path(entry.filename) == path.absolute()
    ]
    return f", row {rows[-1]}" if rows else ""
