"""The handler of a crawl: a function or a class of the user, named by --handler, that receives the pages.

MODULE:NAME is a module that Python can import, from the folder in which the crawl began; FILE.py:NAME is a file. NAME is a
function of a page, or a class: it is made once for each process of the crawl, its method `page` receives the pages, and the
methods `failed` and `close`, if it has them, receive failed fetches and the end. All may be coroutine functions.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from trapline.crawler.engine.options import CrawlOptions
from trapline.errors import ConfigError, nearest

NO_HANDLER = "none"  # the value of --handler that removes the handler of a resumed crawl
_FORMS = "give FILE.py:FUNCTION or MODULE:FUNCTION"


class UserHandler(NamedTuple):
    page: Callable[[Any], object]
    failed: Callable[[Any], object] | None = None
    close: Callable[[], object] | None = None


def handler_changes(text: str | None) -> dict[str, Any]:
    """Return the changes to `CrawlOptions` that the value of --handler means. None: no changes."""
    if text is None:
        return {}
    if text == NO_HANDLER:
        return {"handler": None}
    where, colon, name = text.rpartition(":")
    if not colon or not where or not name.isidentifier():
        raise ConfigError(f"--handler {text}: not the name of a function; {_FORMS}")
    path = f"{Path(where).absolute()}:{name}" if where.endswith(".py") else text
    return {"handler": path, "handler_folder": os.getcwd()}


def check_handler(options: CrawlOptions) -> None:
    """Raise `ConfigError` if the crawl has a handler that cannot be imported or is not one. This runs the user's module."""
    if options.handler:
        _checked(options.handler, options.handler_folder)


def made_handler(options: CrawlOptions) -> UserHandler:
    """Return the handler of a crawl that has one. A class is called here."""
    assert options.handler
    found = _checked(options.handler, options.handler_folder)
    if not isinstance(found, type):
        return UserHandler(found)
    made = _tried(options.handler, found)
    return UserHandler(made.page, getattr(made, "failed", None), getattr(made, "close", None))


def _checked(text: str, folder: str) -> Any:
    where, _, name = text.rpartition(":")
    if where.endswith(".py") and not Path(where).is_file():
        raise ConfigError(f"--handler {text}: no such file; {_FORMS}")
    module = _tried(text, lambda: _file(Path(where)) if where.endswith(".py") else _module(where, folder))
    if not hasattr(module, name):
        names = [one for one, value in vars(module).items() if callable(value) and not one.startswith("_")]
        hint = nearest(name, names) if names else "define a function or class of this name in it"
        raise ConfigError(f"--handler {text}: the module has no function {name!r}; {hint}")
    found = getattr(module, name)
    if not callable(found):
        raise ConfigError(f"--handler {text}: {name} is neither a function nor a class; {_FORMS}")
    if isinstance(found, type) and not callable(getattr(found, "page", None)):
        raise ConfigError(f"--handler {text}: the class has no method `page`; add `def page(self, page)`")
    return found


def _tried(text: str, function: Callable[[], Any]) -> Any:
    """Call the user's code. Every error of it becomes one line."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        line = " ".join(str(error).split())
        raise ConfigError(
            f"--handler {text}: raises {type(error).__name__}: {line}; correct its name or code, or install what it imports"
        ) from error


def _module(name: str, folder: str) -> ModuleType:
    # An installed command does not search the current folder for modules. The folder stays on the path, at its end, for
    # imports inside the handler's functions.
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)


def _file(path: Path) -> ModuleType:
    name = path.stem
    before = sys.modules.get(name)
    if before is not None and getattr(before, "__file__", None) == str(path):
        return before
    if before is not None:
        name = f"handler_{name}"  # another module has the name
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for the modules beside it
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
