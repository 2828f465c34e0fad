"""What all connections of a server share: the web, the log, and the answers made before, up to so many bytes of them.

It knows no socket. Of a web that changes nothing is kept. Else answers are kept first in, first out: a crawler asks once for each
page, so that hardly anything is worth more than that; what profits are benchmarks that ask for the same pages again.
"""

import math

from trapline.testweb.answer import answer
from trapline.testweb.behaviour import Behaviour
from trapline.testweb.log import Recorder
from trapline.testweb.message import Ready, Sending, plain, ready
from trapline.testweb.request import Fields, read_line
from trapline.testweb.web import Web

CACHE_BYTES = 64_000_000
_ENTRY_BYTES = 500  # of a kept answer beside its text


class Serving:
    def __init__(self, web: Web, cache_bytes: int = CACHE_BYTES) -> None:
        self.web = web
        self.recorder = Recorder()
        self._kept: dict[tuple[int, bytes, bool], Ready] = {}
        self._kept_bytes, self._most_bytes = 0, cache_bytes
        self.at_once = [_at_once(behaviour) for behaviour in web.behaviours]
        """[sites] nothing to wait for and nothing to announce: most sites, and the way that is kept short"""
        self._refused: set[tuple[int, bytes, bool]] = set()

    def answer(self, site: int, line: bytes, fields: Fields, now_s: float) -> Ready:
        """To a request line with these fields, at this moment by the log's clock."""
        key = (site, line, fields.gzip)
        return self._kept.get(key) or self._new(key, fields, now_s)

    def _new(self, key: tuple[int, bytes, bool], fields: Fields, now_s: float) -> Ready:
        site, line, gzip = key
        request = read_line(line, gzip)
        if request is None:
            return ready(plain(400))
        if not self.web.constant:
            request = request._replace(none_match=fields.none_match, modified_since=fields.modified_since)
        made = ready(answer(self.web, site, request, key in self._refused, now_s + self.recorder.wall))
        if made.status == 503:
            self._refused.add(key)
        elif made.sending is Sending.WHOLE and self.web.constant:
            self._keep(key, made)
        return made

    def _keep(self, key: tuple[int, bytes, bool], made: Ready) -> None:
        size = len(made.text) + _ENTRY_BYTES
        if size > self._most_bytes:
            return
        self._kept[key] = made
        self._kept_bytes += size
        while self._kept_bytes > self._most_bytes:
            oldest = self._kept.pop(next(iter(self._kept)))
            self._kept_bytes -= len(oldest.text) + _ENTRY_BYTES


def _at_once(behaviour: Behaviour) -> bool:
    waits = behaviour.latency_s or behaviour.connection_s or behaviour.bandwidth < math.inf
    return not (waits or behaviour.http10 or behaviour.requests_per_connection)
