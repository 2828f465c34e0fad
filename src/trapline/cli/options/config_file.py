"""Options from a TOML file (`--config FILE`), and options as the text of such a file.

A key of the file is the name of an option without its dashes: `max-pages = 1000`, `delay = "250ms"`. The file takes the
place of the command's defaults, so that options on the command line override it. Values are checked like typed ones.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from trapline.cli.options.sections import Many, Section, SectionOption
from trapline.cli.options.values import Number, ValueList, seconds
from trapline.errors import ConfigError, nearest

CONFIG, SITE = "config", "site"
_TIME = seconds()
_HELP = "Read options from this TOML file. Options on the command line override it."


def with_config(section: str) -> Callable[[Any], Any]:
    """Return a decorator that adds the option --config to a section of a command."""
    return lambda command: _added(section, command)


def _added(section: str, command: Any) -> Any:
    path = click.Path(path_type=Path, exists=True, dir_okay=False)
    return click.option(
        "--config",
        CONFIG,
        cls=SectionOption,
        section=section,
        type=path,
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_read,
        help=_HELP,
    )(command)


def _read(context: click.Context, _: click.Parameter, file: Path | None) -> None:
    """Make the values of the file the defaults of the command."""
    if file is None:
        return
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"--config {file}: cannot be read as TOML: {error}; correct the file") from None
    params = {name_of(param): param for param in context.command.params if param.name != CONFIG}
    found = {}
    if isinstance(table.get(SITE), dict):
        context.meta[SITE] = {
            host: _site_settings(f'--config {file}: [site."{host}"]', own) for host, own in table.pop(SITE).items()
        }
        _check_sites(file, context.meta[SITE])
    for key, value in table.items():
        param = params.get(key.replace("_", "-"))
        if param is None and isinstance(value, dict):
            raise ConfigError(f"--config {file}: [{key}]: options must not be in a table; remove this line")
        if param is None or param.name is None:
            raise ConfigError(f"--config {file}: there is no option {key!r}; {nearest(key, params)}")
        if param.name in found:
            raise ConfigError(f"--config {file}: {key} is given twice, with a dash and with an underscore; remove one")
        found[param.name] = _checked(context, f"--config {file}: {key}", param, _typed(file, key, param, value))
    context.default_map = {**(context.default_map or {}), **found}


def site_tables() -> dict[str, dict[str, Any]]:
    """Return the settings of single sites in the file, by host, with the names of options as keys. Outside a command: none."""
    context = click.get_current_context(silent=True)
    found: dict[str, dict[str, Any]] = context.meta.get(SITE, {}) if context is not None else {}
    return found


def _site_settings(where: str, table: Any) -> dict[str, Any]:
    """Return the settings of a site. Times may have units; `_check_sites` checks everything else."""
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: not a table; write its settings in lines below it")
    return {
        key: _time(where, key, value) if key in ("delay", "pause") and isinstance(value, str) else value
        for key, value in table.items()
    }


def _check_sites(file: Path, tables: dict[str, dict[str, Any]]) -> None:
    """Raise `ConfigError` with the name of the file if a setting of a site is invalid. A missing pause does not matter here."""
    from trapline.crawler.discovery.site_settings import read_tables

    try:
        read_tables(tables, pause_s=0.0)
    except ConfigError as error:
        raise ConfigError(f"--config {file}: {error}") from None


def _time(where: str, key: str, text: str) -> float:
    try:
        return float(_TIME.convert(text, None, None))
    except click.BadParameter as error:
        raise ConfigError(f"{where}: {key}: {error.message.rstrip('.')}") from None


def name_of(param: click.Parameter) -> str:
    """Return the name of an option or argument as a key of a file."""
    return param.opts[-1].removeprefix("--").replace("_", "-")


def _checked(context: click.Context, where: str, param: click.Parameter, value: Any) -> Any:
    """Return the value. An error names the file and the key; click would name the option, which nobody typed."""
    try:
        param.type_cast_value(context, value)
    except click.BadParameter as error:
        raise ConfigError(f"{where}: {error.message.rstrip('.')}") from None
    return value


def _typed(file: Path, key: str, param: click.Parameter, value: Any) -> Any:
    """Return the value as a user would have typed it, for click to convert and to check."""
    if isinstance(param, click.Option) and param.is_flag:
        if not isinstance(value, bool):
            raise ConfigError(f"--config {file}: {key} is {value!r}; write true or false, without quotes")
        return value
    if param.multiple or param.nargs == -1:
        return [_text(file, key, one) for one in (value if isinstance(value, list) else [value])]
    if key == "seeds" and (isinstance(value, list) or "://" in f"{value}"):
        raise ConfigError(
            f"--config {file}: seeds must be the name of a file with one URL per line; to list the URLs here, write urls = [...]"
        )
    if isinstance(param.type, ValueList) and isinstance(value, list):
        return ",".join(_text(file, key, one) for one in value)
    return _text(file, key, value)


def _text(file: Path, key: str, value: Any) -> str:
    if isinstance(value, bool | list | dict):
        raise ConfigError(
            f"--config {file}: {key} is {str(value).lower() if isinstance(value, bool) else value}; write a number or a text in quotes"
        )
    return f"{value}"


# ---- options as a file


def as_toml(sections: Sequence[Section], values: Mapping[str, Any], omitted: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a file with these values, section by section. An option without a value is a comment. `omitted`: fields
    that are left out."""
    for section in sections:
        rows = [
            (flag, *row[1:]) for flag, row in zip(section.flags, section.rows, strict=True) if row[1] not in omitted
        ]
        if rows:
            yield f"# {section.title}"
        for flag, field, kind, _, text in rows:
            key = flag.removeprefix("--")
            value = values[field]
            has_value = value is not None
            yield f"{key} = {_toml(kind, value)}" if has_value else f"# {key}: not set. {text}"
        if rows:
            yield ""


def sites_as_toml(tables: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the settings of single sites."""
    for host, own in tables.items():
        yield f"[site.{quoted(host)}]"
        for key, value in own.items():
            shown = f"[{', '.join(map(quoted, value))}]" if isinstance(value, list | tuple) else f"{value!r}"
            yield f"{key.replace('_', '-')} = {shown.lower() if isinstance(value, bool) else shown}"
        yield ""


def _toml(kind: Any, value: Any) -> str:
    kind = kind[0] if isinstance(kind, tuple) else kind
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(kind, Many) or isinstance(value, list | tuple):
        return f"[{', '.join(map(quoted, value))}]"
    if isinstance(kind, Number):
        typed = kind.typed(value)
        return typed if typed.replace(".", "", 1).isdecimal() else quoted(typed)
    return quoted(str(value))


def quoted(text: str) -> str:
    r"""Return a TOML string.

    >>> print(quoted(r'a "b" \d'))
    'a "b" \d'
    >>> print(quoted("it's"))
    "it's"
    """
    if "'" not in text and text.isprintable():
        return f"'{text}'"  # a literal string: regular expressions stay readable
    escaped = "".join(one if one.isprintable() and one not in '\\"' else f"\\U{ord(one):08X}" for one in text)
    return f'"{escaped}"'
