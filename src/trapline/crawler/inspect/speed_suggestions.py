"""What would make a crawl faster, for each of its limits: options with their factors, or what else to do.

Factors come from crawler/speed/what_if.py. An option that asks more of other people's servers is marked as one for sites of your own.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trapline.units import BIT_AND_BYTE_RATES, DURATIONS, duration, shortest

_LEAST = 1.1  # a factor below this is not worth a suggestion
_MOST = 4  # suggestions with a factor
_OWN = "; for sites of your own"
_ASK_MORE = ("per-connection", "delay", "pause", "ip-delay")  # of a server
NOTHING_HELPS = "No option helps"
# The options that help against each limit.
_OPTIONS = {
    "few-sites": ("per-connection", "delay", "pause"),
    "site-delay": ("per-connection", "delay", "pause", "ip-delay"),
    "per-connection": ("per-connection", "delay"),
    "address-delay": ("ip-delay", "per-connection"),
    "connections": ("connections", "pause"),
    "robots": ("connections",),
    "bandwidth": ("bandwidth",),
}
_WORDS = {
    "failed": "Fix what the error says, and continue with --resume DIR",
    "disk": "Make room on the disk",
    "drained": "To fetch more, give more seeds, or a wider --scope with --resume DIR",
    "goal": "Give a higher limit with --resume DIR",
    "stopped": "Continue with --resume DIR",
    "broken-off": "Continue with --resume DIR",
    "silent": "If you have suspended the command with Ctrl-Z, continue it with fg",
    "preparing": f"{NOTHING_HELPS}; the first visit follows",
    "starting": f"{NOTHING_HELPS}; the first pages follow",
    "paused": "Continue the crawl: trapline control continue DIR",
    "refresh": f"{NOTHING_HELPS}; pages are fetched again when they are due",
    "store": "Use a faster disk, or several processes (--processes), each of which has a store",
    "handler": "Make the handler faster, or use several processes (--processes), each of which has a handler",
    "processor": "Use several processes (--processes) in a new crawl",
    "answers": f"{NOTHING_HELPS}; the servers set the speed, so only more sites help",
    "dns": "Check the network, or name another name server with --nameserver",
    "back-off": "Check whether these sites work; a smaller --max-failed-visits abandons them sooner",
    "few-sites": "Add seeds on other sites",
    "robots": f"{NOTHING_HELPS} against slow servers",
    "bandwidth": "Give a higher limit with --resume DIR",
    "connections": "Give more connections with --resume DIR",
}


class Suggestion(NamedTuple):
    text: str
    factor: float | None  # by which the crawl would be faster; None: not known


def suggestions(
    limit: str, what_ifs: Sequence[Mapping[str, Any]], options: Mapping[str, Any], is_one_site: bool
) -> list[Suggestion]:
    """Return what helps, the most effective first. There is at least one suggestion, which may say that no option helps."""
    names = _OPTIONS.get(limit, ())
    gentlest: dict[
        tuple[str, str], Mapping[str, Any]
    ] = {}  # of several values with the same factor, the first one asks least
    for one in what_ifs:
        if one["option"] in names and one["factor"] >= _LEAST:
            gentlest.setdefault((one["option"], f"{one['factor']:.1f}"), one)
    chosen = list(gentlest.values())
    chosen.sort(key=lambda one: (-one["factor"], names.index(one["option"])))
    found = [Suggestion(_text(one, options, is_one_site), round(one["factor"], 2)) for one in chosen[:_MOST]]
    if limit in _WORDS and (not found or limit == "few-sites"):
        found.append(Suggestion(_WORDS[limit], None))
    return found or [Suggestion(f"{NOTHING_HELPS} much, because the delays that sites ask for remain", None)]


def _text(what_if: Mapping[str, Any], options: Mapping[str, Any], is_one_site: bool) -> str:
    option, value = what_if["option"], what_if["value"]
    own = "; if the site is yours" if is_one_site else _OWN
    now = next(iter(_now(option, options)), None)
    return (
        f"--{option} {_shown(option, value)}"
        + (f" (now {_now_shown(option, now)})" if now is not None else "")
        + (own if option in _ASK_MORE else "")
    )


def _now(option: str, options: Mapping[str, Any]) -> Iterator[float]:
    """Yield the present value of an option, if it is known."""
    rules = options.get("rules") or {}
    ip_delay_s = rules.get("ip_delay_s")
    found = {
        "per-connection": rules.get("per_connection"),
        "delay": rules.get("delay_s"),
        "ip-delay": rules.get("delay_s") if ip_delay_s is None else ip_delay_s,
        "pause": options.get("pause_s"),
        "connections": options.get("connections"),
        "bandwidth": options.get("bandwidth"),
    }.get(option)
    if found is not None:
        yield found


def _shown(option: str, value: float) -> str:
    """Return the value as people type it.

    >>> _shown("delay", 7.5), _shown("connections", 20.0), _shown("bandwidth", 60e3), _shown("delay", 0.0)
    ('7.5s', '20', '60kB', '0')
    """
    if option in ("per-connection", "connections") or not value:
        return f"{value:.0f}"
    return shortest(value, BIT_AND_BYTE_RATES if option == "bandwidth" else DURATIONS)


def _now_shown(option: str, value: float) -> str:
    """Return the present value as other texts have it.

    >>> _now_shown("delay", 15.0), _now_shown("connections", 20.0)
    ('15 s', '20')
    """
    return duration(value) if option in ("delay", "pause", "ip-delay") else _shown(option, value)
