"""How a live crawl used servers and the processor, in words and counts. This module knows no HTML."""

from trapline.processor import ProcessorTime
from trapline.report.html import CountTile
from trapline.report.live_record import LiveRecord
from trapline.report.record import CrawlRecord
from trapline.units import counted, duration, three_digits


def site_sizes(judged: CrawlRecord) -> list[CountTile]:
    """Return the number of sites by the number of pages that were fetched from each."""
    found = judged.pages_per_site
    return [
        CountTile(_range(size), f"together {counted(pages, 'page')}", sites)
        for size, sites, pages in zip(found.at_least, found.sites, found.pages, strict=True)
        if sites
    ]


def _range(size: int) -> str:
    """
    >>> _range(1), _range(1024)
    ('1', '1,024–2,047')
    """
    return "1" if size == 1 else f"{size:,}–{2 * size - 1:,}"


def servers(record: LiveRecord, judged: CrawlRecord | None) -> dict[str, str]:
    """Return how the crawl used servers and the processor, in words. `judged`: as for `live_page`."""
    found: dict[str, str] = {}
    if judged is not None:
        sizes, locality = judged.pages_per_site, judged.server_locality
        average, median = three_digits(sizes.average), three_digits(sizes.median)
        found["pages per site"] = f"{average} on average, median {median}, largest {sizes.largest:,}"
        found["same visit"] = f"{_percent(locality.visit)} of the fetches follow another one in the same visit"
        found["same site"] = (
            f"{_percent(locality.site)} of the fetches are from the site of the one that ended just before"
        )
        found["same address"] = (
            f"{_percent(locality.address)} of the fetches are from the address of the one that ended just before"
        )
    times = record.summary["processor"]
    for kind, name in (("loop", "main process"), ("store", "store process")):
        found[name] = "not recorded" if times is None else _processor(ProcessorTime(**times[kind]))
    return found


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{three_digits(share * 100)} %"


def _processor(time: ProcessorTime) -> str:
    """
    >>> _processor(ProcessorTime(3.0, 1.0, 4.0))
    'processor busy 50.0 %: user 3 s, system 1 s, idle 4 s'
    """
    shown = f"user {duration(time.user_s)}, system {duration(time.system_s)}, idle {duration(time.idle_s)}"
    return f"processor busy {_percent(time.busy)}: {shown}"
