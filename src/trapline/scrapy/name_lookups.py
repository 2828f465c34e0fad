"""The IP addresses of sites: host names are looked up in threads, with any reactor of Twisted. It knows no frontier and no request.

A site is in one of three places: it waits, it is being looked up, or its address was told. It is looked up once.
"""

import socket
from collections import deque
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from scrapy.utils.asyncio import run_in_thread
from scrapy.utils.defer import deferred_from_coro

_MOST_AT_ONCE = 32


class NameLookups:
    def __init__(self, tell: Callable[[str, str], None]) -> None:
        """`tell`: receives a site and its address. A site whose host has no address is its own address."""
        self._tell = tell
        self._known: set[str] = set()  # waiting, or being looked up
        self._waiting: deque[str] = deque()
        self._under_way = 0
        self._is_open = True

    def add(self, sites: Iterable[str]) -> None:
        """Look up these sites, unless that is under way."""
        new = set(sites) - self._known
        self._known |= new
        self._waiting.extend(new)
        self._begin()

    def close(self) -> None:
        """Tell nothing any more."""
        self._is_open = False
        self._waiting.clear()

    def _begin(self) -> None:
        while self._waiting and self._under_way < _MOST_AT_ONCE:
            site = self._waiting.popleft()
            host = _host(site)
            if _is_address(host):
                self._end(site, host)
            else:
                self._under_way += 1
                deferred_from_coro(self._look_up(site, host))

    async def _look_up(self, site: str, host: str) -> None:
        try:
            address = await run_in_thread(_address, host) or site
        finally:
            self._under_way -= 1
        if self._is_open:
            self._end(site, address)
            self._begin()

    def _end(self, site: str, address: str) -> None:
        self._known.discard(site)
        self._tell(site, address)


def _host(site: str) -> str:
    """Return the host of a site; "": the site is a name that a spider has given."""
    try:
        return urlsplit(site).hostname or ""
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


def _address(host: str) -> str:
    """Return the first address of a host; "": it has none. The request will fail, and the spider learns why."""
    try:
        return str(socket.getaddrinfo(host, None)[0][4][0]) if host else ""
    except (OSError, UnicodeError):  # UnicodeError: a label of the name is empty or too long
        return ""
