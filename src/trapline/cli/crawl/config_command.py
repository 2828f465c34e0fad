"""`trapline config`: prints the configuration that a crawl would have, or has, as a file for `--config`."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline import __version__
from trapline.cli.crawl.options import SECTIONS, Requested, as_typed
from trapline.cli.options.config_file import as_toml, quoted, site_tables, sites_as_toml, with_config
from trapline.cli.options.sections import SectionedCommand, bundled, refuse
from trapline.terminal import say_text
from trapline.units import counted

if TYPE_CHECKING:
    from trapline.crawler.engine.options import CrawlOptions

_LEFT_OUT = ("resume", "seeds", "plain", "quiet", "as_json", "dashboard", "metrics")


@click.command(cls=SectionedCommand)
@click.argument("urls", nargs=-1, metavar="[DIR | URL...]")
@with_config("Crawl")
@bundled("requested", as_typed, *SECTIONS)
def config(urls: tuple[str, ...], requested: Requested) -> None:
    """Print the configuration of a crawl as a TOML file for `trapline crawl --config`.

    If you give the folder of a crawl, this is the configuration of that crawl. Otherwise it is the configuration that `trapline crawl`
    would have with the same arguments and options. All of them are optional here.
    """
    if len(urls) == 1 and Path(urls[0]).is_dir():
        refuse(requested.given, "has no effect on the configuration of an existing crawl; omit it")
        from trapline.crawler.discovery.site_settings import as_tables
        from trapline.crawler.engine.options import CrawlOptions
        from trapline.crawler.files.reading import Reading

        reading = Reading(Path(urls[0]))
        options = CrawlOptions.from_json(reading.meta().get("options", ""))
        reading.close()
        seeds, values = options.seeds, {**requested.given, **_values(options)}
        sites = as_tables(options.sites)
    else:
        values, sites = dict(requested.given), site_tables()
        seeds = requested.options(urls).seeds if urls or values["seeds"] else ()
    lines = [f"# trapline crawl --config, Trapline {__version__}", ""]
    lines += [f"urls = [{', '.join(map(quoted, seeds))}]" if seeds else "# urls: not set. Seed URLs.", ""]
    say_text("\n".join([*lines, *as_toml(SECTIONS, values, _LEFT_OUT), *sites_as_toml(sites)]).rstrip())


def shown_options(options: "CrawlOptions") -> dict[str, str]:
    """Return the options of a crawl that have an effect, by their names, with their values as they are typed."""
    values = {
        name: value for name, value in _values(options).items() if value is not False and value not in ("", (), [])
    }
    if values.get("continuous"):
        del values["refresh"]
    lists = {name: value for name, value in values.items() if isinstance(value, list | tuple)}
    found = {"urls": _listed(options.seeds)} if options.seeds else {}
    for section in SECTIONS:
        single = section.without(*(field for field in section.fields if field not in values or field in lists))
        found |= {flag.removeprefix("--"): text or "yes" for flag, text in single.typed(values)}
        flags = zip(section.flags, section.fields, strict=True)
        found |= {flag.removeprefix("--"): _listed(lists[field]) for flag, field in flags if field in lists}
    found |= {"hosts": counted(len(options.hosts), "name")} if options.hosts else {}
    return found | ({"[site] tables": _listed(tuple(options.sites))} if options.sites else {})


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values[:2]) + (f" and {len(values) - 2:,} more" if len(values) > 2 else "")


def _values(options: "CrawlOptions") -> dict[str, Any]:
    """Return the values of a crawl's options, by the fields of the command line."""
    refresh = options.refresh
    found: dict[str, Any] = {
        field: getattr(source, field)
        for section in SECTIONS
        for field in section.fields
        for source in (options.limits, options.rules, options)
        if hasattr(source, field)
    }
    found |= {name: None for name, value in found.items() if isinstance(value, float) and math.isinf(value)}
    found |= {name: None for name in ("credentials", "cookies") if not found[name]}
    found["refresh"], found["continuous"] = refresh is not None, refresh is not None and refresh.continuous
    if refresh is not None:
        rate = None if math.isinf(refresh.rate) else refresh.rate
        found |= {"refresh_policy": refresh.policy, "refresh_share": refresh.share, "refresh_price": refresh.price}
        found |= {
            "refresh_rate": rate,
            "refresh_settings": [f"{name}={value}" for name, value in refresh.settings.items()],
        }
    return found
