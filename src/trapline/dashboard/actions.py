"""Orders from the browser: checks the body of a request, and gives the order to the crawl as the command line does."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from trapline.crawler.files.control_mailbox import ADD_SEEDS, BLOCK, CONTINUE, DELAY, PAUSE, STOP, UNBLOCK, Order, send

# The orders, and the value that each one needs.
ORDERS = {
    PAUSE: None,
    CONTINUE: None,
    STOP: None,
    BLOCK: "site",
    UNBLOCK: "site",
    DELAY: "site",
    ADD_SEEDS: "urls",
}
_MOST_TEXT = 2_000
_MOST_URLS = 10_000
_MOST_DELAY_S = 1e9


def give_order(folder: Path, body: bytes, client: str) -> str:
    """Give the order in the body of a request to the crawl in a folder, and return its answer.

    Raise `HTTPException` if the body is no order, and `ConfigError` if the crawl refuses it or does not answer.
    """
    do, values = read_order(body)
    return send(folder, Order(do, f"dashboard, {client}", values))


def read_order(body: bytes) -> tuple[str, dict[str, Any]]:
    """Return the order of a request and its values."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    do = given.get("do") if isinstance(given, dict) else None
    if not isinstance(do, str) or do not in ORDERS:
        raise HTTPException(400, f"do must be one of: {', '.join(ORDERS)}")
    if given.get("confirm") is not True:
        raise HTTPException(400, "the order is not confirmed; send confirm: true")
    needs = ORDERS[do]
    values = _site(given) if needs == "site" else _urls(given) if needs == "urls" else {}
    return do, {**values, "delay_s": _delay_s(given)} if do == DELAY else values


def _site(given: Mapping[str, Any]) -> dict[str, Any]:
    site = given.get("site")
    if not isinstance(site, str) or not 0 < len(site) <= _MOST_TEXT:
        raise HTTPException(400, "site must be a host name such as example.org, or *.example.org")
    return {"site": site.strip()}


def _delay_s(given: Mapping[str, Any]) -> float:
    delay_s = given.get("delay_s")
    if isinstance(delay_s, bool) or not isinstance(delay_s, int | float) or not 0.0 <= delay_s <= _MOST_DELAY_S:
        raise HTTPException(400, "delay_s must be a number of seconds")
    return float(delay_s)


def _urls(given: Mapping[str, Any]) -> dict[str, Any]:
    urls = given.get("urls")
    if not (isinstance(urls, list) and 0 < len(urls) <= _MOST_URLS and all(isinstance(url, str) for url in urls)):
        raise HTTPException(400, f"urls must be a list of 1 to {_MOST_URLS:,} URLs")
    return {"urls": [url.strip() for url in urls]}
