"""Names of a package that are imported when they are first used, because not every user of the package needs what is behind them."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a package. `homes`: modules, each with the names that the package has from it.

    No name may be that of a module in the package: once imported, the module would take its place.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        setattr(import_module(package), name, value)  # so that the next lookup does not call this function
        return value

    return find
