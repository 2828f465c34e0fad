"""State that all connections of a server share: the web, the log, and a cache of answers with a limit in bytes.

It knows no sockets. Answers of a changing web are not cached. The cache is first in, first out, which is enough: a crawler
requests each page once, and only benchmarks that request the same pages again profit from it.
"""

import math

from trapline.testweb.answers.answer import answer
from trapline.testweb.answers.message import Fields, Ready, Sending, plain, read_line, ready
from trapline.testweb.server.log import Recorder
from trapline.testweb.web.behaviour import Behaviour
from trapline.testweb.web.served_web import ServedWeb

CACHE_BYTES = 64_000_000
_ENTRY_BYTES = 500  # memory of a cached answer besides its text


class AnswerService:
    """Answers requests from a cache or by `answer`."""

    def __init__(self, web: ServedWeb, cache_bytes: int = CACHE_BYTES) -> None:
        self.web = web
        self.recorder = Recorder()
        self._kept: dict[tuple[int, bytes, bool], Ready] = {}
        self._kept_bytes, self._most_bytes = 0, cache_bytes
        self.at_once = [web.latency_s is None and _at_once(behaviour) for behaviour in web.behaviours]
        """[sites] whether the site has no delays and no limits to announce; most sites, which get a fast path"""
        self._refused: set[tuple[int, bytes, bool]] = set()

    def answer(self, site: int, line: bytes, fields: Fields, now_s: float) -> Ready:
        """Return the answer to a request line with these fields, at the time `now_s` by the log's clock."""
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
    times = (behaviour.latency_s, behaviour.connection_s, behaviour.initial_window, behaviour.closing_s)
    waits = any(times) or behaviour.bandwidth < math.inf
    return not (waits or behaviour.http10 or behaviour.requests_per_connection)
