"""Actions from the browser: checks the body of a request, and sends the action to the crawl as the command line does."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from trapline.crawler.files.control_mailbox import ADD_SEEDS, BLOCK, CONTINUE, DELAY, PAUSE, STOP, UNBLOCK, Action, send

# The actions, and the value that each one needs.
ACTIONS = {
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


def send_action(folder: Path, body: bytes, client: str) -> str:
    """Send the action in the body of a request to the crawl in a folder, and return its answer.

    Raise `HTTPException` if the body is no action, and `ConfigError` if the crawl refuses it or does not answer.
    """
    name, values = read_action(body)
    return send(folder, Action(name, f"dashboard, {client}", values))


def read_action(body: bytes) -> tuple[str, dict[str, Any]]:
    """Return the action of a request and its values."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    name = given.get("action") if isinstance(given, dict) else None
    if not isinstance(name, str) or name not in ACTIONS:
        raise HTTPException(400, f"action must be one of: {', '.join(ACTIONS)}")
    if given.get("confirm") is not True:
        raise HTTPException(400, "the action is not confirmed; send confirm: true")
    needs = ACTIONS[name]
    values = _site(given) if needs == "site" else _urls(given) if needs == "urls" else {}
    return name, {**values, "delay_s": _delay_s(given)} if name == DELAY else values


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
