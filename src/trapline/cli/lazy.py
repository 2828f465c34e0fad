"""A click group that imports a command only when it is invoked.

Commands import numba, but `trapline --help` must answer at once. So the table holds the help line of each command, and listing the
commands imports none of them.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from trapline.errors import nearest


class Lazy(NamedTuple):
    """The place of a command, as `module:attribute`, and its line in the group's help."""

    where: str
    help: str

    def load(self) -> click.Command:
        module, attribute = self.where.split(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command), self.where
        return command


class HintGroup(click.Group):
    """A group that answers an unknown command with the nearest one, or with all of them."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            raise click.UsageError(f"unknown command {name!r}; {nearest(name, known)}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(HintGroup):
    def __init__(self, *args: Any, lazy: Mapping[str, Lazy], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.lazy[cmd_name].load() if cmd_name in self.lazy else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in self.lazy.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that the shell offers. Unlike click's own method, this imports none of them."""
        found = [CompletionItem(name, help=row.help) for name, row in self.lazy.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]
