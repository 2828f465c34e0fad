"""The lines that `trapline crawl` prints when a crawl has ended: results, abandoned sites, rejected links and files.

This module reads only the crawl's summary.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trapline.parallel import CROSS_OVER
from trapline.terminal import say as print_line
from trapline.terminal import say_json, say_text
from trapline.units import bytes_shown, counted, duration, three_digits

NOTHING_FETCHED = 3  # exit code
_MOST_FOLLOWED = 3
_BAD_REQUEST, _UNAUTHORIZED = 400, "401"  # HTTP statuses; in the summary they are texts


# Settings that may bring new pages into a crawl in which nothing is left to fetch.
_WIDENING = ("scope", "include", "exclude", "max_depth", "max_depth_dynamic", "max_pages_per_site", "retries", "site")


def ended_before(
    folder: Path, given: dict[str, Any], goals: dict[str, float], settings: Mapping[str, Any]
) -> int | None:
    """Return the exit code of a crawl that has nothing left to do, and print the reason. None: there is something left.
    `settings`: those that change."""
    from trapline.crawler.inspect.database_reader import ended

    finds_more = given["continuous"] or any(name in settings for name in _WIDENING)
    end = ended(folder, finds_more, given["handler"], **goals)
    if end is None:
        return None
    _print(end.line, end.summary, given)
    return _exit_code(end.summary, folder)


def say(summary: dict[str, Any], folder: Path, given: dict[str, Any]) -> int:
    """Print the results of the crawl. Return the exit code."""
    _print(closing_lines(summary, folder), summary, given)
    return _exit_code(summary, folder)


def _exit_code(summary: dict[str, Any], folder: Path) -> int:
    """Return the exit code. If the crawl fetched nothing, print why."""
    from trapline.crawler.engine.stop_reasons import BY_HAND, UNREACHABLE

    if summary["pages_fetched"] or summary["stopped_by"] in BY_HAND:
        return 0
    if summary["stopped_by"] == UNREACHABLE:
        again = f"if the server was down, run: trapline crawl --resume {folder}"
        cure = f"check the address; another address needs another folder (-o); {again}"
    elif _UNAUTHORIZED in summary["statuses"]:
        cure = "the server asks for a password: give it with --credentials FILE in a new crawl"
    else:
        cure = f"see: trapline explain {folder} URL"
    print_line(f"trapline: error: no page was fetched: {_why_nothing(summary)}; {cure}", err=True)
    return NOTHING_FETCHED


def _why_nothing(summary: dict[str, Any]) -> str:
    """Return why a crawl fetched no page.

    >>> numbers = {"errors_by_kind": {"connect": 5}, "forbidden_by_robots": 1, "redirects": 0}
    >>> _why_nothing({**numbers, "abandoned_sites_by_kind": {"dns": 1}, "stopped_by": "drained"})
    '5 errors (connect), 1 site with no address, 1 page forbidden by robots.txt'
    """
    from trapline.crawler.engine.stop_reasons import UNREACHABLE
    from trapline.crawler.inspect.summary import ABANDONED
    from trapline.fetch import failure

    causes = {failure.CONNECT: failure.CONNECTION_REFUSED} if summary["stopped_by"] == UNREACHABLE else {}
    refusals = [status for status in summary.get("statuses", {}) if int(status) >= _BAD_REQUEST]
    if refusals:
        causes[failure.HTTP] = f"answers with status {' and '.join(refusals)}"
    reasons = [
        f"{counted(number, 'error')} ({causes.get(kind, kind)})" for kind, number in summary["errors_by_kind"].items()
    ]
    for kind in (failure.DNS, failure.ADDRESS):
        if sites := summary["abandoned_sites_by_kind"].get(kind):
            reasons.append(f"{counted(sites, 'site')} with {ABANDONED[kind]}")
    if summary["redirects"]:
        reasons.append(f"{counted(summary['redirects'], 'redirect')}{_to_rejected(summary)}")
    if summary["forbidden_by_robots"]:
        reasons.append(f"{counted(summary['forbidden_by_robots'], 'page')} forbidden by robots.txt")
    return ", ".join(reasons) or "no answer so far"


def _to_rejected(summary: dict[str, Any]) -> str:
    """Return where redirects led to, if the crawl rejected their targets."""
    from trapline.crawler.inspect.summary import REJECTED

    rejected = summary["rejected_links"]
    return f" to URLs that the crawl rejects: {counts(rejected, REJECTED)}" if rejected else ""


def _print(lines: str, summary: dict[str, Any], given: dict[str, Any]) -> None:
    if given["as_json"]:
        say_json(summary)
    elif not given["quiet"]:
        say_text(lines)


def closing_lines(summary: dict[str, Any], folder: Path) -> str:
    """Return the results of the crawl, and the commands to type next."""
    from trapline.crawler.engine.stop_reasons import BY_HAND

    return "\n".join(
        (
            f"{counted(summary['pages_fetched'], 'page')}, {bytes_shown(summary['bytes'])}, {counted(summary['errors'], 'error')} in"
            f" {duration(summary['seconds'])}: {three_digits(summary['pages_per_second'])} pages/s;"
            f" stopped by: {stopped_by(summary['stopped_by'])}",
            f"{counted(summary['urls_known'], 'URL')} known{_besides(summary)} on {counted(summary['sites'], 'site')};"
            f" politeness violations: {summary['politeness_violations']}",
            *_errors(summary, folder),
            *_followed(summary),
            *_parallel(summary),
            *_handled(summary, folder),
            *_scored(summary, folder),
            *_refetched(summary),
            *_listed(summary),
            *requisites(summary),
            *_rejected(summary, folder),
            f"files in {folder}: {_files(folder)}; report: trapline report {folder}"
            + (f"; continue: trapline crawl --resume {folder}" if summary["stopped_by"] in BY_HAND else ""),
        )
    )


def _errors(summary: dict[str, Any], folder: Path) -> Iterator[str]:
    if summary["errors"]:
        yield f"errors: {counts(summary['errors_by_kind'], {})}; to see the URLs of the latest ones, run: trapline status {folder}"


def _besides(summary: dict[str, Any]) -> str:
    """Return the number of redirects, which are URLs and no pages."""
    redirects = summary["redirects"]
    return f" ({redirects:,} of them {'redirects' if redirects == 1 else 'redirect'})" if redirects else ""


def _followed(summary: dict[str, Any]) -> Iterator[str]:
    if followed := summary["scope_followed"]:
        more = f" and {len(followed) - _MOST_FOLLOWED:,} more" if len(followed) > _MOST_FOLLOWED else ""
        yield f"scope: followed the redirects of seeds to {', '.join(followed[:_MOST_FOLLOWED])}{more}"


def _files(folder: Path) -> str:
    from trapline.parallel.folder.manifest import is_parallel

    return f"crawl.db, {'partition-0/warc/, ...' if is_parallel(folder) else 'warc/, index.cdxj'}, summary.json"


def stopped_by(why: str | None) -> str:
    """Return the reason why a crawl stopped, in the user's terms: the option or the event.

    >>> stopped_by("max-time"), stopped_by("drained")
    ('--max-time', 'nothing was left to fetch')
    """
    from trapline.crawler.engine.stop_reasons import ENDS

    return ENDS.get(why or "", why or "unknown reason")


def _parallel(summary: dict[str, Any]) -> Iterator[str]:
    if "mode" in summary:
        again = f"; overlap: {summary['overlap']:.3f}" if summary["mode"] == CROSS_OVER else ""
        yield (
            f"{counted(summary['processes'], 'partition')}; mode: {summary['mode']}; partition function: {summary['partition']};"
            f" URLs exchanged: {summary['urls_exchanged']:,}, {summary['urls_exchanged_per_page']:.3f} per page{again}"
        )


def _handled(summary: dict[str, Any], folder: Path) -> Iterator[str]:
    from trapline.crawler.handler.handler_thread import HANDLER_LOG
    from trapline.parallel.folder.manifest import is_parallel

    if "pages_handled" in summary:
        log = folder / ("partition-*" if is_parallel(folder) else "") / HANDLER_LOG
        errors = counted(summary["handler_errors"], "error") + (f", see {log}" if summary["handler_errors"] else "")
        yield f"handler: {counted(summary['pages_handled'], 'page')}, {errors}"


def _scored(summary: dict[str, Any], folder: Path) -> Iterator[str]:
    from trapline.crawler.files.event_log import LOG
    from trapline.parallel.folder.manifest import is_parallel

    if summary.get("scorer_errors"):
        log = folder / ("partition-*" if is_parallel(folder) else "") / LOG
        failures, scorer = counted(summary["scorer_errors"], "page"), summary["quality_source"]
        yield f"the scorer {scorer} failed on {failures}; quality 0 there; see {log}"


def _refetched(summary: dict[str, Any]) -> Iterator[str]:
    refetched, popularity = summary["pages_refetched"], summary["popularity"]
    if popularity:
        unchanged = f"{summary['pages_unchanged']:,} unchanged ({summary['not_modified']:,} by status 304)"
        yield (
            f"refetched: {counted(refetched, 'page')}, {summary['pages_changed']:,} changed, {unchanged};"
            f" {counted(summary['signals'], 'signal')}; popularity of pages estimated from {popularity}"
        )


def _listed(summary: dict[str, Any]) -> Iterator[str]:
    from trapline.crawler.inspect.summary import REJECTED

    if summary["lists_read"]:
        rejected = summary["rejected_entries"]
        yield (
            f"sitemaps and feeds: {summary['lists_read']:,} read; pages listed: {summary['pages_listed']:,};"
            f" pages found only there: {summary['pages_only_listed']:,}, of which {summary['pages_only_listed_fetched']:,} fetched"
            + (f"; rejected entries: {counts(rejected, REJECTED)}" if rejected else "")
        )


def requisites(summary: dict[str, Any]) -> Iterator[str]:
    """Yield a line about the requisites of pages, if there are any.

    >>> numbers = {"requisites_fetched": 312, "requisites_failed": 3, "requisites_forbidden": 0, "requisites_waiting": 1}
    >>> list(requisites({**numbers, "requisite_sites": 4}))
    ['requisites: 312 fetched from 4 sites, 3 failed, 1 waiting']
    """
    fetched = f"fetched from {counted(summary['requisite_sites'], 'site')}"
    words = {"fetched": fetched, "failed": "failed", "forbidden": "forbidden by robots.txt", "waiting": "waiting"}
    numbers = {word: summary[f"requisites_{name}"] for name, word in words.items()}
    if any(numbers.values()):
        always = (fetched, "failed")
        yield f"requisites: {', '.join(f'{n:,} {word}' for word, n in numbers.items() if n or word in always)}"


def _rejected(summary: dict[str, Any], folder: Path) -> Iterator[str]:
    from trapline.crawler.inspect.summary import ABANDONED, REJECTED

    if summary["abandoned_sites"]:
        abandoned_sites = counts(summary["abandoned_sites_by_kind"], ABANDONED)
        yield f"abandoned sites: {abandoned_sites}; to see why, run: trapline explain {folder} SITE"
    if summary["rejected_links"]:
        yield f"rejected links: {counts(summary['rejected_links'], REJECTED)}"


def counts(numbers: Mapping[str, int], words: Mapping[str, str]) -> str:
    """Return numbers by reason as one text. `words`: the text of each reason.

    >>> counts({"dns": 1_200, "new": 3}, {"dns": "no address"})
    '1,200 (no address), 3 (new)'
    """
    return ", ".join(f"{amount:,} ({words.get(name, name)})" for name, amount in numbers.items())
