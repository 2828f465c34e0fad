"""Names with a share each, as an option: `reset=1%,silent=0.5%`. It knows no names."""

from typing import Any

import click

from trapline.cli.numbers import share


class Shares(click.ParamType[Any]):
    """A name alone has all."""

    name = "shares"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        pairs = (one.partition("=") for one in value.split(",") if one)
        return tuple((name, share().convert(text if equals else "100%", param, ctx)) for name, equals, text in pairs)


SHARES = (Shares(), "NAME=SHARE,...")
