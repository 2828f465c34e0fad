"""Options grouped into sections: sections in the help, and one argument of the command per bundle of sections.

Some commands have forty options. Nobody finds an option in one list of forty, and nobody reads a function with forty arguments.
"""

import shlex
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from trapline.cli.options.values import Number, ValueList
from trapline.errors import ConfigError

_LEAST_TEXT = 10  # characters of help per line, even in a narrow terminal

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


@dataclass(frozen=True, slots=True)
class Many:
    """The kind of an option that may be repeated. Its value is a tuple of strings."""

    metavar: str


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """The kind of an option that may be given without a value. Its value is a string."""

    metavar: str
    value: str  # if none is given


class SectionOption(click.Option):
    def __init__(self, *args: Any, section: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


# Options of other crawlers and of wget and curl that people try first, and the options that they mean.
GUESSED = {
    "--concurrency": "--connections",
    "--parallel": "--connections",
    "--threads": "--connections",
    "--workers": "--processes",
    "--depth": "--max-depth",
    "--level": "--max-depth",
    "--depth-limit": "--max-depth",
    "--limit": "--max-pages",
    "--max-urls": "--max-pages",
    "--quota": "--max-bytes",
    "--callback": "--handler",
    "--pipeline": "--handler",
    "--plugin": "--handler",
    "--rate": "--delay (time between two visits to a site) or --bandwidth",
    "--limit-rate": "--bandwidth",
    "--wait": "--delay",
    "--tries": "--retries",
    "--retry": "--retries",
    "--domains": "--scope domain",
    "--domain": "--scope domain",
    "--allowed-domains": "--scope domain",
    "--span-hosts": "--scope any",
    "--same-host": "--scope host",
    "--no-parent": "--include (a regular expression)",
    "--accept": "--include (a regular expression)",
    "--dir": "--output",
    "--directory-prefix": "--output",
    "--jobdir": "--output (and --resume to continue)",
    "--budget": "--max-pages or --max-time",
    "--autothrottle": "--delay (time between two visits to a site)",
    "--input-file": "--seeds",
    "--urls": "--seeds",
    "--out": "--output",
    "--output-dir": "--output",
    "--accept-regex": "--include",
    "--reject-regex": "--exclude",
    "--no-check-certificate": "--insecure",
    "--load-cookies": "--cookies",
    "--user": "--credentials",
    "--password": "--credentials",
    "--auth": "--credentials",
    "--ignore-robots": "--no-robots",
    "--reject": "--exclude-extension",
    "--headers": "--header",
    "--page-requisites": "--requisites",
    "--mirror": "--archive",
}


class SectionedCommand(click.Command):
    """A command whose help lists the options by section, in the order in which the sections first occur."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            meant = GUESSED.get(error.option_name, "")
            if meant and meant.split()[0] in (name for param in self.params for name in param.opts):
                raise click.UsageError(f"there is no option {error.option_name}; use {meant}", ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        # The sort is stable: it only moves --help, which has no section, to the end.
        for param in sorted(self.get_params(ctx), key=lambda param: not hasattr(param, "section")):
            row = param.get_help_record(ctx)
            if row is not None and isinstance(param, click.Option):
                sections.setdefault(getattr(param, "section", "Help"), []).append(row)
        widest = max(len(flag) for rows in sections.values() for flag, _ in rows)
        for name, rows in sections.items():
            with formatter.section(name):
                for flag, text in rows:
                    formatter.write(_row(f"{'':{formatter.current_indent}}{flag:{widest}}  ", text, formatter.width))


def _row(first: str, text: str, width: int) -> str:
    """Return an option and its text in two columns. Unlike click, this keeps names such as crawl-ability on one line."""
    width = max(width, len(first) + _LEAST_TEXT)
    return (
        textwrap.fill(text, width, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False)
        + "\n"
    )


REQUIRED = object()


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the help: options as rows of (flags, field, kind, default, text).

    A `kind` of None means a switch; a pair means type and metavar. The help text is followed by the default in brackets, in the format
    of its type, unless the text already ends with a bracket. A default of None is not shown; the text may mention it. `REQUIRED` in
    place of a default means that the user must give the option.
    """

    title: str
    rows: Sequence[tuple[str, str, Any, Any, str]]

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(field for _, field, *_ in self.rows)

    @property
    def flags(self) -> tuple[str, ...]:
        """The long flag of each option; of a pair such as --sitemaps/--no-sitemaps the first."""
        return tuple(flags.split()[-1].partition("/")[0] for flags, *_ in self.rows)

    def with_defaults(self, **changes: Any) -> "Section":
        """Return the section with other defaults for the named fields. Fields of other sections are ignored."""
        return self._changed({3: changes})

    def with_texts(self, **changes: str) -> "Section":
        return self._changed({4: changes})

    def listed(self, *fields: str) -> "Section":
        """Return the section with these fields as lists of values, separated by commas: N becomes N,..."""
        kinds = {field: _list_of(kind) for _, field, kind, *_ in self.rows if field in fields}
        return self._changed({2: kinds})

    def without(self, *fields: str) -> "Section":
        """Return the section without these fields, for a command in which they would have no effect."""
        return replace(self, rows=tuple(row for row in self.rows if row[1] not in fields))

    def _changed(self, columns: Mapping[int, Mapping[str, Any]]) -> "Section":
        def changed(row: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(columns.get(at, {}).get(row[1], value) for at, value in enumerate(row))

        return replace(self, rows=tuple(map(changed, self.rows)))

    def typed(self, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield flag and value of each option as a user would type them, without options that are None or at an empty default."""
        for flags, field, kind, default, _ in self.rows:
            value = values[field]
            if value is None or (value == default and not value):
                continue
            on, _, off = flags.split()[-1].partition("/")
            yield off if off and not value else on, "" if kind is None else _typed(kind, value)

    def __call__(self, command: Command) -> Command:
        for flags, field, kind, default, text in reversed(self.rows):
            many, without = isinstance(kind, Many), kind.value if isinstance(kind, OptionalValue) else None
            named = isinstance(kind, Many | OptionalValue)
            kind, metavar = (str, kind.metavar) if named else kind if isinstance(kind, tuple) else (kind, None)
            command = click.option(
                *flags.split(),
                field,
                cls=SectionOption,
                section=self.title,
                type=kind,
                is_flag=kind is None,
                multiple=many,
                metavar=metavar,
                help=text if text.endswith("]") else text + _shown(kind, default),
                # An explicit default of None would count as a default, and click would no longer require the option.
                **({"required": True} if default is REQUIRED else {"default": default}),
                **({} if without is None else {"flag_value": without}),
            )(command)
        return command


def _list_of(kind: Any) -> tuple[ValueList, str]:
    one, metavar = kind if isinstance(kind, tuple) else (kind, kind.name.upper())
    return ValueList(one), f"{metavar},..."


def _typed(kind: Any, value: Any) -> str:
    kind = kind[0] if isinstance(kind, tuple) else kind
    return kind.typed(value) if isinstance(kind, Number) else shlex.quote(str(value))


def _shown(kind: Any, default: Any) -> str:
    if default in (None, (), "", REQUIRED) or isinstance(default, bool):
        return ""
    return f" [{kind.shown(default) if isinstance(kind, Number | ValueList) else default}]"


def bundled(name: str, make: Callable[..., Any], *sections: Section) -> Decorator:
    """Return a decorator that passes the options of these sections to a command as one argument: name=make(field=value, ...)."""
    fields = [field for section in sections for field in section.fields]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(**given: Any) -> Any:
            own = {field: given.pop(field) for field in fields}
            return command(**given, **{name: make(**own)})

        bundle: Command = call
        for section in reversed(sections):
            bundle = section(bundle)
        return bundle

    return decorate


def refuse(fields: Collection[str], why: str) -> None:
    """Raise `ConfigError` if the user gave one of these options, which would have no effect. Outside a command nothing is given."""
    context = click.get_current_context(silent=True)
    for param in context.command.params if context else ():
        if param.name in fields and is_given(param.name or ""):
            raise ConfigError(f"{param.opts[-1]} {why}")


def is_given(field: str) -> bool:
    """Return whether the user gave this option of the current command, on the command line or in a file (`--config`). A default
    in a file does not count: `trapline config` writes all options."""
    context = click.get_current_context()
    source = context.get_parameter_source(field)
    if source is not ParameterSource.DEFAULT_MAP:
        return source is ParameterSource.COMMANDLINE
    (param,) = (param for param in context.command.params if param.name == field)
    return bool(context.params[field] != param.type_cast_value(context, param.default))
