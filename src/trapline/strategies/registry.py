"""Finds strategies: every module of this folder, and a user's own file. A new strategy is one file; nothing is listed
anywhere."""

import importlib
import importlib.util
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import trapline.strategies
from trapline.errors import ConfigError, nearest
from trapline.strategies.strategy import PageRank, SiteRank, Strategy

Declared = TypeVar("Declared", PageRank, SiteRank, Strategy)


@cache
def _modules() -> tuple[ModuleType, ...]:
    names = sorted(found.name for found in pkgutil.iter_modules(trapline.strategies.__path__))
    return tuple(importlib.import_module(f"trapline.strategies.{name}") for name in names)


def _declared(attribute: str, kind: type[Declared]) -> dict[str, Declared]:
    found = (getattr(module, attribute, None) for module in _modules())
    return {declared.name: declared for declared in found if isinstance(declared, kind)}


def page_ranks() -> dict[str, PageRank]:
    return _declared("PAGE", PageRank)


def site_ranks() -> dict[str, SiteRank]:
    return _declared("SITE", SiteRank)


def strategies() -> dict[str, Strategy]:
    return _declared("STRATEGY", Strategy)


def pair(page: str, site: str, name: str = "") -> Strategy:
    """Any page rank with any site rank."""
    pages, sites = page_ranks(), site_ranks()
    if page not in pages:
        raise ConfigError(f"no page rank {page!r}; {nearest(page, pages)}")
    if site not in sites:
        raise ConfigError(f"no site rank {site!r}; {nearest(site, sites)}")
    return Strategy(name or f"{page} x {site}", pages[page], sites[site])


def load_strategy(name: str) -> Strategy:
    """A strategy by its name, or from a Python file (a name that ends in .py) that declares STRATEGY."""
    if name.endswith(".py"):
        return _from_file(Path(name))
    known = strategies()
    if name not in known:
        raise ConfigError(f"no strategy {name!r}; {nearest(name, known)}")
    return known[name]


def _from_file(path: Path) -> Strategy:
    if not path.is_file():
        raise ConfigError(f"{path}: no such strategy file")
    spec = importlib.util.spec_from_file_location(f"user_strategy_{path.stem}", path)
    assert spec is not None and spec.loader is not None  # a .py file always has a loader
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:  # whatever the user's file raises is the user's to mend
        raise ConfigError(f"{path}: {type(error).__name__}: {error}") from error
    strategy = getattr(module, "STRATEGY", None)
    if not isinstance(strategy, Strategy):
        raise ConfigError(f"{path}: it must declare STRATEGY = Strategy(name, page rank, site rank)")
    return strategy
