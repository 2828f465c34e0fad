"""Fits `trapline.servers.model.ServerModel` to real records: TRAPLINE_DATA=DIR python bench/fit_servers.py [--plot]

Reads the records in DIR, which docs/server-models.md lists, prints every parameter with the records that it comes from and
the quality of the fit, and compares the parameters with the defaults in the code. --plot also draws docs/server-models.png.
docs/server-models.md explains which records are not used, and why.
"""

import csv
import gzip
import json
import lzma
import math
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from trapline.graph import Graph, generate
from trapline.graph.page_sizes import page_sizes
from trapline.servers.model import MODELS, ServerModel
from trapline.servers.sampled import PageSeconds, modelled_servers, page_seconds

Floats = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("TRAPLINE_DATA", ""))
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
PUBLISHED = ((1.5, 0.90), (3.0, 0.95))  # thesis fig. 4.2: seconds, share of pages under them

SMALL = 3_000  # bytes: two packets, with negligible transfer time
PAGE = 20_000  # bytes: up to this size the time of a page is mostly waiting
LARGE = 30_000  # bytes: enough to measure the speed of a server
TICK_S = 0.001  # resolution of the logs: milliseconds
STALL = 4  # a page stalls if it takes this many times its site's usual time
QUICK_S = 0.1  # stalls are measured on sites quicker than this; on slower ones the usual time hides them
# Sites of the Danish web archive, which made the logs
OWN = ("kb.dk", "netarkivet.dk", "netarchive.dk", "pligtaflevering.dk")
NEVER_TRIED = {-5003, -9998}  # Heritrix: over quota, forbidden by robots.txt
# Heritrix: connection, time-out, name, robots.txt or empty answer
NO_ANSWER = {
    -404,
    -63,
    -61,
    -8,
    -6,
    -5,
    -4,
    -3,
    -2,
    -1,
}
FOR_NOW = {408, 429, 502, 503, 504}  # statuses of temporary failures


class Fetch(NamedTuple):
    site: tuple[str, str]  # record and host; the same host in another record is another site
    status: int
    seconds: float
    bytes: float
    page: bool  # whether it is an HTML page, not an image, a script or robots.txt


def lines(path: Path) -> Iterator[str]:
    opened = lzma.open if path.suffix == ".xz" else gzip.open
    with opened(path, "rt", encoding="utf-8-sig", errors="replace") as file:
        yield from file


def heritrix(data: Path) -> Iterator[Fetch]:
    """Yield the fetches of Heritrix's logs. The seconds include connection, wait and transfer; each fetch has its own connection."""
    # Files 10 and 12 are 09 and 11, sorted; 13 is a part of 09 with all durations replaced by 36 ms.
    for path in sorted((data / "heritrix-crawl-logs").glob("*.log.gz")):
        if not path.name.startswith("13_"):
            yield from (fetch for line in lines(path) for fetch in _crawl_line(path, line))


def _crawl_line(path: Path, line: str) -> Iterator[Fetch]:
    parts = line.split()
    if len(parts) < 9 or not parts[3].startswith("http") or parts[3].endswith("/robots.txt"):
        return
    took = re.fullmatch(r"\d{17}\+(\d+)", parts[8])
    size = float(parts[2]) if parts[2] != "-" else 0.0
    status = int(parts[1])
    site = (path.name[:2], urlsplit(parts[3]).netloc)
    yield Fetch(site, status, int(took[1]) / 1000 if took else math.nan, size, status == 200 and "html" in parts[6])


def requests_2025(data: Path) -> Iterator[Fetch]:
    """Yield the fetches of 2025. The seconds include DNS lookup, connection, TLS, wait and transfer."""
    path = data / "fetch-latency-2025" / "beautifulsoup_latency_logs.csv.gz"
    for row in csv.DictReader(lines(path)):
        if row["domain"]:  # one row is the heading of a list
            status = int(row["http_status"]) or -4
            yield Fetch(
                ("25", row["domain"]), status, float(row["elapsed_sec"]), float(row["size_bytes"]), status == 200
            )


class Exchange(NamedTuple):
    """One entry of a HAR file; NaN for missing values."""

    site: tuple[str, str]
    tcp_s: float
    wait_s: float
    page: bool


def har(data: Path) -> Iterator[Exchange]:
    for path in sorted((data / "har-samples").glob("*.har.xz")):
        # Two files are copies of wpt_github, one of them edited; www.bbc.com came out of the browser's cache.
        if not path.name.startswith(("github.com.", "www.bbc.com.")):
            yield from (_exchange(path, entry) for entry in json.loads("".join(lines(path)))["log"]["entries"])


def _exchange(path: Path, entry: dict[str, Any]) -> Exchange:
    seconds = {name: float(entry["timings"].get(name) or -1) / 1000 for name in ("connect", "ssl", "wait")}
    tcp = seconds["connect"] - max(seconds["ssl"], 0)  # HAR 1.2: connect includes ssl
    answer = entry["response"]
    page = answer.get("status") == 200 and "html" in (answer["content"].get("mimeType") or "")
    site = (path.name, urlsplit(entry["request"]["url"]).netloc)
    return Exchange(site, tcp if tcp > 0 else math.nan, seconds["wait"] if seconds["wait"] > 0 else math.nan, page)


@dataclass(frozen=True)
class Thinking:
    """The seconds that pages of one site took beyond the round trip."""

    source: str
    host: str
    seconds: Floats

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))


def thinking(data: Path) -> list[Thinking]:
    found = []
    for site, fetches in _by_site(f for f in heritrix(data) if f.status >= 200):
        # The quickest answer of the site is assumed to take two round trips and nothing else.
        quickest = min(f.seconds for f in fetches)
        found.append(Thinking("heritrix", site[1], _seconds((f.seconds - quickest) for f in fetches if _short_page(f))))
    for site, exchanges in _by_site(har(data)):
        round_trip = min((e.tcp_s for e in exchanges if e.tcp_s == e.tcp_s), default=math.nan)
        found.append(Thinking("har", site[1], _seconds(e.wait_s - round_trip for e in exchanges if e.page)))
    for site, fetches in _by_site(f for f in requests_2025(data) if f.page):
        found.append(Thinking("2025", site[1], _seconds(f.seconds for f in fetches)))
    return [site for site in found if len(site.seconds) >= 3]


def _short_page(fetch: Fetch) -> bool:
    return fetch.page and fetch.bytes <= PAGE


def _seconds(values: Iterable[float]) -> Floats:
    return np.array([max(value, TICK_S) for value in values if value == value])


def _by_site(items: Iterable[Any]) -> Iterable[tuple[tuple[str, str], list[Any]]]:
    sites = defaultdict(list)
    for item in items:
        sites[item.site].append(item)
    return sites.items()


def speeds(data: Path) -> dict[str, float]:
    """Return bytes per second of each host: the median over its large bodies, less the time of its small ones."""
    found = defaultdict(list)
    for site, fetches in _by_site(f for f in heritrix(data) if f.status >= 200):
        small = [f.seconds for f in fetches if f.bytes <= SMALL]
        waiting = float(np.median(small)) if small else math.nan
        for fetch in fetches:
            # A transfer of less than two ticks measures the clock and not the server.
            if fetch.bytes >= LARGE and fetch.seconds - waiting > 2 * TICK_S:
                found[site[1]].append(fetch.bytes / (fetch.seconds - waiting))
    return {host: float(np.median(values)) for host, values in found.items()}


def round_trips(data: Path) -> Floats:
    """Return the round trips between the 490 hosts of PlanetLab in seconds, at two times."""
    pairs = np.triu_indices(490, 1)
    times = [np.loadtxt(lines(data / "netlatency" / f"PlanetLabData_{n}.xz"))[pairs] for n in (1, 9)]
    return np.concatenate(times) / 1000


def sizes(data: Path) -> dict[str, list[Floats]]:
    """Return the bytes of the pages of each host, by crawl."""
    return {name: _sizes(data / name / "pages.tsv.gz") for name in ("uci-ics-crawl", "ku-crawl-2016")}


def _sizes(path: Path) -> list[Floats]:
    hosts = defaultdict(list)
    for line in lines(path):
        parts = line.rstrip("\n").split("\t")
        if not line.startswith("#") and (len(parts) == 4 or parts[1] == "1") and float(parts[-3]) > 0:
            hosts[urlsplit(parts[-1]).netloc].append(float(parts[-3]))
    return [np.array(values) for values in hosts.values()]


def one_vote(sites: Iterable[Thinking]) -> dict[str, float]:
    """Return one value for each host, no matter how often it was crawled: the median."""
    hosts = defaultdict(list)
    for site in sites:
        hosts[site.host].append(site.median)
    return {host: float(np.median(values)) for host, values in hosts.items()}


def page_factors(sites: list[Thinking]) -> tuple[Floats, Floats]:
    """Return ln(seconds / the site's median) of every page, and its weight. All sites weigh the same."""
    logs = [np.log(site.seconds / site.median) for site in sites]
    return np.concatenate(logs), np.concatenate([np.full(len(x), 1 / len(x) / len(logs)) for x in logs])


def weighted_quantiles(values: Floats, weights: Floats, shares: Iterable[float]) -> Floats:
    order = np.argsort(values)
    return np.interp(list(shares), np.cumsum(weights[order]) - weights[order] / 2, values[order])


def weibull(values: Floats) -> tuple[float, float]:
    """Return shape and scale of the maximum-likelihood Weibull distribution, by bisection."""
    logs = np.log(values)

    def slope(shape: float) -> float:
        powers = values**shape
        return float((powers * logs).sum() / powers.sum() - 1 / shape - logs.mean())

    low, high = 0.1, 10.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return low, float((values**low).mean() ** (1 / low))


def lognormal(values: Floats) -> tuple[float, float]:
    """Return median and spread (standard deviation of the logarithm)."""
    logs = np.log(values)
    return float(np.exp(logs.mean())), float(logs.std(ddof=1))


def distance(values: Floats, below: Callable[[Floats], Floats], weights: Floats | None = None) -> float:
    """Return Kolmogorov's distance: the largest difference between the shares of record and model below any value."""
    order = np.argsort(values)
    weights = np.full(len(values), 1 / len(values)) if weights is None else weights
    upto = np.cumsum(weights[order])
    model = below(values[order])
    return float(max(np.abs(upto - model).max(), np.abs(upto - weights[order] - model).max()))


def failures(fetches: Iterable[Fetch]) -> tuple[int, int, int]:
    """Return the number of fetches tried, failed (may be retried) and refused."""
    tried = [f.status for f in fetches if f.status not in NEVER_TRIED]
    failed = sum(s in NO_ANSWER or s in FOR_NOW for s in tried)
    refused = sum(s >= 400 and s not in FOR_NOW for s in tried)
    return len(tried), failed, refused


def spread_of_pages(sites: list[Thinking]) -> float:
    """Return half the width of the middle 68 % of the logarithms, for pages that did not stall."""
    logs, weights = page_factors(sites)
    usual = logs <= math.log(STALL)
    low, high = weighted_quantiles(logs[usual], weights[usual] / weights[usual].sum(), (0.16, 0.84))
    return float(high - low) / 2


def stalls(sites: list[Thinking]) -> tuple[float, Floats, Floats]:
    """Return the share of stalled pages, their time beyond the usual, and their weights."""
    quick = [site for site in sites if site.median < QUICK_S]
    logs, weights = page_factors(quick)
    beyond = np.concatenate([site.seconds - site.median for site in quick])
    stalled = logs > math.log(STALL)
    share = float(weights[stalled].sum())
    return share, beyond[stalled], weights[stalled] / share


def weighted_lognormal(values: Floats, weights: Floats) -> tuple[float, float]:
    logs = np.log(values)
    middle = float((weights * logs).sum())
    return math.exp(middle), math.sqrt(float((weights * (logs - middle) ** 2).sum()))


def correlation(sites: list[Thinking], speed: dict[str, float]) -> tuple[float, int]:
    """Return the correlation of the logarithms of thinking and speed, and the number of hosts with both."""
    of_host = one_vote(site for site in sites if site.source == "heritrix")
    both = sorted(of_host.keys() & speed.keys())
    logs = np.log([[of_host[host] for host in both], [speed[host] for host in both]])
    return float(np.corrcoef(logs)[0, 1]), len(both)


class SizeFit(NamedTuple):
    """The fitted parameters of `graph/page_sizes.py`."""

    median: float
    spread: float
    between_sites: float
    """share of the variance of ln size that lies between sites"""
    tail_exponent: float
    """Hill's estimate from the top hundredth"""


def fit_sizes(hosts: list[Floats]) -> SizeFit:
    """Fit the sizes of the pages of a crawl.

    All pages weigh the same, because large sites have smaller pages than small sites. The body is fitted to the quantiles .05
    to .90, because the sizes beyond them follow another law.
    """
    logs = np.sort(np.log(np.concatenate(hosts)))
    shares = np.arange(5, 91) / 100
    spread, middle = np.polyfit([NormalDist().inv_cdf(share) for share in shares], np.quantile(logs, shares), 1)
    within = sum(np.log(values).var() * len(values) for values in hosts) / len(logs)
    top = logs[-(len(logs) // 100) :]
    return SizeFit(math.exp(middle), spread, 1 - within / logs.var(), 1 / float((top[1:] - top[0]).mean()))


class Records(NamedTuple):
    thinking: list[Thinking]
    speeds: dict[str, float]
    round_trips: Floats
    sizes: dict[str, list[Floats]]
    crawled: list[Fetch]
    shops: list[Fetch]


def read(data: Path) -> Records:
    crawled, shops = list(heritrix(data)), list(requests_2025(data))
    return Records(thinking(data), speeds(data), round_trips(data), sizes(data), crawled, shops)


def fit(records: Records) -> ServerModel:
    shape, scale = weibull(records.round_trips)
    think, think_spread = lognormal(np.array(list(one_vote(records.thinking).values())))
    share, beyond, weights = stalls(records.thinking)
    stall, stall_spread = weighted_lognormal(beyond, weights)
    speed = np.array(list(records.speeds.values()))
    tried, failed, refused = failures(records.crawled)
    found = {
        "connection_shape": shape,
        "connection_scale_s": scale,
        "think_median_s": think,
        "think_spread": think_spread,
        "page_spread": spread_of_pages(records.thinking),
        "stall_share": share,
        "stall_median_s": stall,
        "stall_spread": stall_spread,
        "speed_median": lognormal(speed)[0],
        "speed_spread": lognormal(speed)[1],
        "speed_least": float(speed.min()),
        "speed_most": float(speed.max()),
        "think_speed_correlation": correlation(records.thinking, records.speeds)[0],
        "failed": failed / tried,
        "refused": refused / tried,
    }
    return ServerModel(**{name: float(f"{value:.3g}") for name, value in found.items()})


def through_published(measured: ServerModel) -> tuple[float, float, float]:
    """Return median, spread between sites and spread between pages of the lognormal through both points of thesis fig. 4.2."""
    (first_s, first), (second_s, second) = PUBLISHED
    z = NormalDist().inv_cdf(first), NormalDist().inv_cdf(second)
    spread = math.log(second_s / first_s) / (z[1] - z[0])
    whole = math.hypot(measured.think_spread, measured.page_spread)
    parts = spread * measured.think_spread / whole, spread * measured.page_spread / whole
    return first_s * math.exp(-spread * z[0]), *parts


def normal_below(median: float, spread: float) -> Callable[[Floats], Floats]:
    normal = NormalDist(math.log(median), spread)
    return lambda values: np.array([normal.cdf(value) for value in np.log(values)])


def row(name: str, values: Iterable[float], gap: float | None = None) -> None:
    cells = " | ".join(f"{value:.3g}" if value < 1000 else f"{value:,.0f}" for value in values)
    print(f"| {name} | {cells} | {'' if gap is None else f'{gap:.3f}'} |")


def table(title: str) -> None:
    print(f"\n{title}\n\n| | {' | '.join(f'{share:.0%}' for share in QUANTILES)} | distance |")
    print("|---|" + "---:|" * (len(QUANTILES) + 1))


def compare_lognormal(name: str, values: Floats, median: float, spread: float, weights: Floats | None = None) -> None:
    weights = np.full(len(values), 1 / len(values)) if weights is None else weights
    row(f"{name}, record", weighted_quantiles(values, weights, QUANTILES))
    model = [median * math.exp(spread * NormalDist().inv_cdf(share)) for share in QUANTILES]
    row(f"{name}, model", model, distance(values, normal_below(median, spread), weights))


def print_round_trips(records: Records, model: ServerModel) -> None:
    shape, scale = model.connection_shape, model.connection_scale_s
    table(f"Round trip, s ({len(records.round_trips):,} values)")
    row("record", np.quantile(records.round_trips, QUANTILES))
    gap = distance(records.round_trips, lambda s: 1 - np.exp(-((s / scale) ** shape)))
    row("Weibull", [scale * (-math.log(1 - share)) ** (1 / shape) for share in QUANTILES], gap)
    median, spread = lognormal(records.round_trips)
    model_row = [median * math.exp(spread * NormalDist().inv_cdf(share)) for share in QUANTILES]
    row("lognormal", model_row, distance(records.round_trips, normal_below(median, spread)))


def print_thinking(records: Records, model: ServerModel) -> None:
    table("Thinking, s: the median page of a host, hosts weighing the same")
    for source in ("heritrix", "har", "2025"):
        sites = [site for site in records.thinking if site.source == source]
        values = np.array(list(one_vote(sites).values()))
        row(f"{source}: {len(values)} hosts, spread {lognormal(values)[1]:.2f}", np.quantile(values, QUANTILES))
    values = np.array(list(one_vote(records.thinking).values()))
    compare_lognormal(f"{len(values)} hosts", values, model.think_median_s, model.think_spread)
    print_pages(records, model)
    _, beyond, weights = stalls(records.thinking)
    table(f"Stalls, s: {len(beyond)} pages")
    compare_lognormal("stalled", beyond, model.stall_median_s, model.stall_spread, weights)


def print_pages(records: Records, model: ServerModel) -> None:
    """Print the time of pages beyond a round trip, record and model: all pages, then by the usual time of the site."""
    table("Thinking and stall, s: all pages, hosts weighing the same")
    times = Counter(site.host for site in records.thinking)
    weights = [np.full(len(s.seconds), 1 / len(s.seconds) / times[s.host]) for s in records.thinking]
    weight, seconds = np.concatenate(weights), np.concatenate([site.seconds for site in records.thinking])
    drawn = draw_pages(model)
    row("record", weighted_quantiles(seconds, weight / weight.sum(), QUANTILES))
    ordered = np.sort(drawn[1])
    gap = distance(seconds, lambda s: np.searchsorted(ordered, s) / len(ordered), weight / weight.sum())
    row("model", np.quantile(drawn[1], QUANTILES), gap)
    table("The same over the site's usual time, by that time")
    for low, high in ((0.0, 0.02), (0.02, 0.1), (0.1, 0.4), (0.4, math.inf)):
        logs, weight = page_factors([site for site in records.thinking if low <= site.median < high])
        row(f"{low}-{high} s, record", np.exp(weighted_quantiles(logs, weight, QUANTILES)))
        here = (drawn[0] >= low) & (drawn[0] < high)
        row(f"{low}-{high} s, model", np.quantile(drawn[1][here] / drawn[0][here], QUANTILES))


def draw_pages(model: ServerModel, count: int = 400_000) -> tuple[Floats, Floats]:
    """Draw the usual time of a site and the time of one page of it, without connection and limits.

    It uses numpy's generator on purpose, so that it is independent of the simulator's draws.
    """
    random = np.random.default_rng(1)
    usual = model.think_median_s * np.exp(model.think_spread * random.standard_normal(count))
    seconds = usual * np.exp(model.page_spread * random.standard_normal(count))
    stalled = random.random(count) < model.stall_share
    stall = model.stall_median_s * np.exp(model.stall_spread * random.standard_normal(count))
    return usual, seconds + stalled * stall


def print_others(records: Records, model: ServerModel) -> None:
    speed = np.array(list(records.speeds.values()))
    table("Speed of a host, bytes/s")
    compare_lognormal(f"{len(speed)} hosts", speed, model.speed_median, model.speed_spread)
    strength, hosts = correlation(records.thinking, records.speeds)
    print(f"\nCorrelation of thinking and speed: {strength:.2f} over {hosts} hosts")
    table("Size of a page, bytes (all pages of a crawl; the model drawn for the same sites)")
    for name, hosts_of in records.sizes.items():
        row(f"{name}, record", np.quantile(np.concatenate(hosts_of), QUANTILES))
        row("model", *compare_sizes(hosts_of))
    for name, hosts_of in records.sizes.items():
        print(f"\n{name}:", ", ".join(f"{what} {value:.4g}" for what, value in fit_sizes(hosts_of)._asdict().items()))
    tcp = [(e.tcp_s, e.wait_s) for e in har(DATA) if e.tcp_s == e.tcp_s and e.wait_s == e.wait_s]
    floor = np.quantile(np.array(tcp)[:, 1] / np.array(tcp)[:, 0], (0.05, 0.25, 0.5))
    print(
        f"\nHAR, {len(tcp)} entries with a new connection: wait / TCP connection at 5, 25, 50 %: {np.round(floor, 2)}"
    )
    for name, fetches in (("heritrix", records.crawled), ("2025", records.shops)):
        tried, failed, refused = failures(fetches)
        print(
            f"{name}: {tried} fetches, {failed} failed ({failed / tried:.1%}), {refused} refused ({refused / tried:.1%})"
        )


def compare_sizes(hosts: list[Floats]) -> tuple[Floats, float]:
    site = np.repeat(np.arange(len(hosts), dtype=np.int32), [len(values) for values in hosts])
    drawn = np.sort(np.concatenate([page_sizes(seed, site) for seed in range(20)]))
    pages = np.concatenate(hosts)
    return np.quantile(drawn, QUANTILES), distance(pages, lambda v: np.searchsorted(drawn, v) / len(drawn))


def draws(name: str, web: Graph) -> list[PageSeconds]:
    """Draw servers twenty times, because the few largest sites of a web hold many of its pages."""
    return [page_seconds(modelled_servers(web, MODELS[name], seed), web) for seed in range(20)]


def print_figure(web: Graph) -> None:
    """Print our shares and the published ones of thesis fig. 4.2, and the part of waiting in them."""
    under = " | ".join(f"under {s} s" for s, _ in PUBLISHED)
    print(f"\n| model | {under} | longer waiting than sending | waiting of all seconds |\n|---|---:|---:|---:|---:|")
    print("| published | " + " | ".join(f"{share:.0%}" for _, share in PUBLISHED) + ' | "usually" | |')
    for name in MODELS:
        taken = draws(name, web)
        shares = [[(t.total < s).mean() for t in taken] for s, _ in PUBLISHED]
        shares += [[t.mostly_waiting for t in taken], [t.waiting_share for t in taken]]
        print(f"| {name} | " + " | ".join(f"{np.mean(s):.1%} ± {np.std(s):.1%}" for s in shares) + " |")


def print_why(records: Records, model: ServerModel, web: Graph) -> None:
    """Print how much of the difference from fig. 4.2 each part of the model explains."""
    old, old_spread = lognormal(
        np.array(list(one_vote(s for s in records.thinking if s.source == "heritrix").values()))
    )
    variants = {
        "nothing changed": model,
        "instant connections and round trips": replace(model, connection_scale_s=0),
        "no stalls": replace(model, stall_share=0),
        "unlimited speed": replace(model, speed_median=math.inf, speed_most=math.inf),
        "the thinking of the Heritrix hosts only": replace(model, think_median_s=old, think_spread=old_spread),
    }
    print(
        f"\n| measured, with | {' | '.join(f'under {s} s' for s, _ in PUBLISHED)} | median, s |\n|---|---:|---:|---:|"
    )
    for name, variant in variants.items():
        totals = [page_seconds(modelled_servers(web, variant, seed), web).total for seed in range(20)]
        shares = " | ".join(f"{np.mean([(t < s).mean() for t in totals]):.1%}" for s, _ in PUBLISHED)
        print(f"| {name} | {shares} | {np.mean([np.median(t) for t in totals]):.2f} |")
    others = {host: s for host, s in one_vote(records.thinking).items() if not host.endswith(OWN)}
    speed = np.array([s for host, s in records.speeds.items() if not host.endswith(OWN)])
    print("\nWithout the sites of the archive that made the logs:", end=" ")
    for what, values in (("thinking", np.array(list(others.values()))), ("speed", speed)):
        median, spread = lognormal(values)
        print(
            f"{what} median {median:.3g}, spread {spread:.3g} ({len(values)} hosts)",
            end="; " if what != "speed" else "\n",
        )


def print_speed(web: Graph) -> None:
    started = time.process_time()
    modelled_servers(web)
    took_s = time.process_time() - started
    print(f"\nDrawn for {web.pages:,} pages on {web.sites:,} sites in {took_s:.2f} s of processor time")


def plot(web: Graph, path: Path) -> None:
    from trapline.report.plot import dress, new_figure

    figure = new_figure(10.0, 5.4, dpi=130)
    axes = figure.add_subplot()
    for label, style, values in _curves(draws("measured", web), draws("thesis", web)):
        axes.plot(np.quantile(values, SHARES), SHARES * 100, label=label, **style)
    seconds, shares = zip(*PUBLISHED, strict=True)
    points = {"label": "published (thesis)", "color": "#000000", "markersize": 9, "zorder": 5}
    axes.plot(seconds, [share * 100 for share in shares], "D", **points)
    axes.set(
        xscale="log", xlim=(0.01, 100), ylim=(0, 100), xlabel="seconds (log scale)", ylabel="pages that take less (%)"
    )
    axes.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    dress(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    title = "Time of a page fetched alone, beside thesis fig. 4.2"
    axes.set_title(
        f"{title}\ngenerated web, {web.pages:,} pages on {web.sites:,} sites, servers drawn 20 times",
        loc="left",
        fontsize=12,
    )
    figure.savefig(path)


SHARES = np.linspace(0.001, 0.999, 999)


def _curves(measured: list[PageSeconds], thesis: list[PageSeconds]) -> Iterator[tuple[str, dict[str, Any], Floats]]:
    def all_of(name: str) -> Floats:
        return np.concatenate([getattr(t, name) for t in measured])

    yield "measured: total", {"color": "#0072B2", "linewidth": 2.6}, all_of("total")
    waiting = all_of("connection") + all_of("latency")
    yield "measured: connection\nand latency", {"color": "#D55E00", "linestyle": (0, (6, 2))}, waiting
    yield "measured: transfer", {"color": "#009E73", "linestyle": (0, (3, 1.5))}, all_of("transfer")
    points = np.concatenate([t.total for t in thesis])
    yield "thesis: lognormal\nthrough both points", {"color": "#707070", "linestyle": ":"}, points


def main(arguments: list[str]) -> None:
    if not (DATA / "heritrix-crawl-logs").is_dir():
        print("nothing was fitted: set TRAPLINE_DATA to the folder of the records (docs/server-models.md)")
        return
    records = read(DATA)
    model = fit(records)
    for field in fields(model):
        ours, now = getattr(model, field.name), getattr(MODELS["measured"], field.name)
        print(f"{field.name:24} {ours!s:46}{'' if ours == now else f'  the code has {now}'}")
    print(
        "through fig. 4.2 (median, spreads of sites and pages):", [float(f"{x:.3g}") for x in through_published(model)]
    )
    print_round_trips(records, model)
    print_thinking(records, model)
    print_others(records, model)
    web = generate(100_000, 5_000, seed=1)
    print_figure(web)
    print_why(records, model, web)
    print_speed(generate(1_000_000, 15_000, seed=1))
    if "--plot" in arguments:
        plot(web, ROOT / "docs" / "server-models.png")


if __name__ == "__main__":
    main(sys.argv[1:])
