"""The numbers of one live crawl in words: its headline, its sites as columns, and what came back, counted.

It reads a live record and knows nothing of HTML.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from http import HTTPStatus

from trapline.crawl.options import CrawlOptions, RefreshOptions
from trapline.crawl.summary import GIVEN_UP, LEFT_OUT
from trapline.crawl.tally import FORBIDDEN
from trapline.fetch import failure
from trapline.report.html import Count, Headline
from trapline.report.live_record import LiveRecord, SiteRow
from trapline.report.table import Column
from trapline.units import byte_rate, bytes_shown, counted, duration, number, three_digits

KINDS = {
    failure.ADDRESS: "its address is not a public one",
    failure.CONNECT: "no connection",
    failure.TLS: "no secure connection",
    failure.CLOSED: "the connection ended before the answer did",
    failure.TIMEOUT: "too slow",
    failure.PROTOCOL: "not HTTP",
    failure.TOO_LARGE: "headers too large",
    failure.ENCODING: "a coding that cannot be read",
    failure.HTTP: "answers of 400 and above",
    failure.ROBOTS: "robots.txt could not be had",
    FORBIDDEN: "not asked for, by robots.txt",
}
ENDS = {
    "max-pages": "--max-pages",
    "max-seconds": "--max-time",
    "max-bytes": "--max-bytes",
    "drained": "nothing was left to fetch",
    "interrupted": "Ctrl-C",
    "terminated": "SIGTERM",
}
"""What ended a crawl, as its user knows it: `stopped_by` in docs/crawl-summary.md."""
RULES = {
    "apart": "overlapped an earlier visit to the same site or address",
    "rest": "began before the site or address had rested",
    "pause": "asked again before the answer, or too soon after it",
    "robots": "asked for what robots.txt forbids",
}


def headlines(record: LiveRecord) -> list[Headline]:
    found = record.summary
    seconds, broken = found["seconds"], found["politeness_violations"]
    return [
        Headline(f"{found['pages_fetched']:,}", "pages", f"of {found['urls_known']:,} known"),
        Headline(number(found["pages_per_second"]), "pages a second", f"in {duration(seconds)}"),
        Headline(bytes_shown(found["bytes"]), "received", byte_rate(found["bytes"] / seconds if seconds else 0.0)),
        Headline(f"{record.sites_visited:,}", "sites visited", _of_sites(found["sites"], found["sites_given_up"])),
        Headline(f"{found['errors']:,}", "errors", _share(found["errors"], found["fetches"], "fetches")),
        Headline(f"{broken:,}", "broken rules", f"in {counted(found['visits'], 'visit')}", bad=broken > 0),
    ]


def _of_sites(known: int, given_up: int) -> str:
    return f"of {known:,} known{f', {given_up:,} given up' if given_up else ''}"


def _share(part: int, whole: int, what: str) -> str:
    return f"{three_digits(part / whole * 100)} % of {whole:,} {what}" if whole else ""


def site_columns(sites: Sequence[SiteRow]) -> list[Column]:
    def column(name: str, about: str, values: Sequence[float | None], text: Callable[[float], str]) -> Column:
        return Column("", name, about, list(values), ["–" if one is None else text(one) for one in values])

    found = [
        column("pages", "Pages fetched.", [site.pages for site in sites], "{:,}".format),
        column("known", "Pages discovered, fetched or not.", [site.known for site in sites], "{:,}".format),
        column(
            "MB",
            "Megabytes (10^6 bytes) of page bodies, as received.",
            [site.bytes / 1e6 for site in sites],
            three_digits,
        ),
        column(
            "response (s)", "Seconds to the first byte, on average.", [s.response_s for s in sites], "{:.3f}".format
        ),
        column(
            "errors",
            "Failed requests, answers of 400 and above, bodies that cannot be decoded.",
            [site.errors for site in sites],
            "{:,}".format,
        ),
        column("forbidden", "Pages not asked for, by robots.txt.", [site.forbidden for site in sites], "{:,}".format),
        column("Crawl-delay (s)", "What its robots.txt asks for.", [s.crawl_delay_s for s in sites], "{:g}".format),
    ]
    return [one for one in found if one.name not in ("forbidden", "Crawl-delay (s)") or any(one.values)]


def statuses(record: LiveRecord) -> list[Count]:
    return [Count(status, _phrase(status), number) for status, number in record.summary["statuses"].items()]


def _phrase(status: str) -> str:
    """
    >>> _phrase("404"), _phrase("999")
    ('Not Found', '')
    """
    return HTTPStatus(int(status)).phrase if status in {str(one.value) for one in HTTPStatus} else ""


def failures(record: LiveRecord) -> list[Count]:
    found: dict[str, int] = dict(record.summary["errors_by_kind"])
    if record.summary["forbidden_by_robots"]:
        found[FORBIDDEN] = record.summary["forbidden_by_robots"]
    return [Count(kind, KINDS.get(kind, ""), number) for kind, number in found.items()]


def given_up(record: LiveRecord) -> list[Count]:
    return [
        Count(kind, GIVEN_UP.get(kind, ""), number) for kind, number in record.summary["sites_given_up_by_kind"].items()
    ]


def left_out(record: LiveRecord) -> list[Count]:
    return [
        Count(reason, LEFT_OUT.get(reason, ""), number) for reason, number in record.summary["links_left_out"].items()
    ]


def types(record: LiveRecord) -> list[Count]:
    return [Count(mime or "(none)", "", number) for mime, number in record.summary["types"].items()]


def settings(options: CrawlOptions) -> dict[str, object]:
    """The options that say something, flat; rules and limits among them."""
    told = asdict(options)
    flat = {
        **{name: one for name, one in told.items() if name not in ("rules", "limits", "hosts", "refresh")},
        "pause_s": options.pause_s,
        **told["rules"],
        **{f"limit_{name}": one for name, one in told["limits"].items()},
        **(_refresh_settings(options.refresh) if options.refresh else {}),
    }
    if options.hosts:
        flat["hosts"] = counted(len(options.hosts), "name")
    shown = {name: _listed(value) if isinstance(value, tuple) else value for name, value in flat.items()}
    return {name: value for name, value in shown.items() if _says_something(name, value)}


def _refresh_settings(told: RefreshOptions) -> dict[str, object]:
    """By the names of the options that they were typed as."""
    return {
        "refresh": not told.continuous,
        "continuous": told.continuous,
        "refresh_policy": told.policy,
        "refresh_option": _listed(tuple(f"{name}={value:g}" for name, value in told.settings.items())),
        "refresh_share": told.share if told.price is None else None,
        "refresh_price": told.price,
        "refresh_rate": told.rate,
    }


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(values[:2]) + (f" and {len(values) - 2:,} more" if len(values) > 2 else "")


def _says_something(name: str, value: object) -> bool:
    """No delay says something, no limit does not."""
    return value not in (None, "", False, 0, math.inf) or (name.endswith("_s") and value == 0)
