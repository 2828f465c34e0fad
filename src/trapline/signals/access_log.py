"""Access counts by URL and hour, read from web server logs and from lists. Pure: lines in, counts out.

Each line is in one of three formats, recognised line by line: the combined log format of web servers (optionally with the
virtual host in front), tab-separated `url<tab>count` or `url<tab>seconds since 1970`, and JSON objects
`{"url": ..., "time": ..., "count": ...}`.
Only visits by people count, as far as a log shows them: GET requests, answered with 200 or 304, whose user agent does not
name a robot, for a target other than robots.txt.
"""

import json
import math
import re
from calendar import monthrange, timegm
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache

from trapline.fetch.urls import canonical, target
from trapline.signals.inbox import ACCESS, Signal

HOUR_S = 3600.0
LEAST_TIME = 1e8  # a smaller number is a count, a larger one a time: 1e8 s is in March 1973
MOST_COUNT = 1e9
CHANNEL = "api"

_COMBINED = re.compile(
    rb"(?:(?P<host>[^ :\[]+(?::\d+)?) )?"
    rb"\S+ \S+ (?:\S+|\"[^\"]*\") \[(?P<hour>\d\d/[A-Za-z]{3}/\d{4}:\d\d):\d\d:\d\d (?P<zone>[+-]\d{4})\] "
    rb"\"(?P<method>[A-Z]+) (?P<target>[^\" ]+)(?: [^\"]*)?\" (?P<status>\d{3}) \S+"
    rb"(?: \"[^\"]*\" \"(?P<agent>(?:[^\"\\]|\\.)*)\")?"
)
# Words in the user agents of robots, and of programs that fetch without a human reader. An empty user agent or "-" counts as
# a robot too.
_ROBOT = re.compile(
    rb"bot\b|bot[/_;-]|crawl|spider|slurp|trapline|archiver|scrapy|wget|curl|python|java/|go-http|libwww|httpclient|monitor"
    rb"|preview|feed|facebookexternalhit|headless",
    re.IGNORECASE,
)
_MONTHS = {name: number for number, name in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}

COUNTED, BAD, ROBOTS, NOT_A_VISIT, ELSEWHERE = "counted", "bad", "robots", "not a visit", "elsewhere"


class AccessCounts:
    """Counts of accesses, by URL and start of the hour.

    `site`: the site that the log belongs to, for lines that name no host; "": unknown, and such lines are not counted.
    """

    def __init__(self, site: str, now: float, robots: bool = False) -> None:
        self._site, self._now, self._with_robots = site, now, robots
        self.lines: Counter[str] = Counter()  # number of lines by outcome: COUNTED, BAD, ...
        self.counts: dict[tuple[str, float], float] = defaultdict(float)

    def read(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            if line := line.strip():
                self.lines[self._line(line)] += 1

    def signals(self, channel: str) -> Iterator[Signal]:
        for (url, hour), count in self.counts.items():
            yield Signal(0, self._now, channel, url, ACCESS, hour, count, True)

    def _line(self, line: bytes) -> str:
        if line[:1] == b"{":
            return self._json(line)
        if b"\t" in line:
            return self._tabs(line)
        return self._combined(line)

    def _combined(self, line: bytes) -> str:
        found = _COMBINED.match(line)
        hour = found and _hour(found["hour"], found["zone"])
        if found is None or hour is None:
            return BAD
        if found["method"] != b"GET" or found["status"] not in (b"200", b"304"):
            return NOT_A_VISIT
        agent = found["agent"]
        if not self._with_robots and agent is not None and (agent in (b"-", b"") or _ROBOT.search(agent)):
            return ROBOTS
        site = _site_of(found["host"]) or self._site
        if not site:
            return ELSEWHERE
        return self._add(canonical(found["target"].decode("latin-1"), f"{site}/"), hour, 1.0)

    def _tabs(self, line: bytes) -> str:
        url, _, value = line.partition(b"\t")
        try:
            number = float(value)
        except ValueError:
            return BAD
        is_time = number >= LEAST_TIME
        when, count = (number, 1.0) if is_time else (self._now, number)
        return self._add(canonical(url.decode("utf-8", "replace"), self._site or None), when, count)

    def _json(self, line: bytes) -> str:
        try:
            access = json.loads(line)
            when, count = float(access.get("time", self._now)), float(access.get("count", 1))
            return self._add(canonical(access["url"], self._site or None), when, count)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            return BAD

    def _add(self, url: str | None, when: float, count: float) -> str:
        if url is None or not 0.0 < count <= MOST_COUNT or not 0.0 <= when <= self._now + HOUR_S:
            return BAD
        if target(url) == "/robots.txt":
            return NOT_A_VISIT
        self.counts[url, math.floor(when / HOUR_S) * HOUR_S] += count
        return COUNTED


@lru_cache(maxsize=1024)
def _site_of(host: bytes | None) -> str:
    """Return the origin of a log's virtual host; "" if the line names none.

    >>> _site_of(b"a.org"), _site_of(b"a.org:443"), _site_of(None)
    ('http://a.org', 'https://a.org:443', '')
    """
    if host is None:
        return ""
    scheme = "https" if host.endswith(b":443") else "http"
    return f"{scheme}://{host.decode('latin-1')}"


@lru_cache(maxsize=1024)
def _hour(text: bytes, zone: bytes) -> float | None:
    """Return the start of an hour of the log, in seconds since 1970; None if the text is not a valid date.

    >>> _hour(b"10/Oct/2000:13", b"-0700")
    971208000.0
    """
    day, month, year, hour = int(text[:2]), _MONTHS.get(text[3:6].capitalize()), int(text[7:11]), int(text[12:14])
    if month is None or year < 1 or not 1 <= day <= monthrange(year, month)[1] or hour > 23 or int(zone[1:3]) > 14:
        return None
    offset_s = (int(zone[1:3]) * 3600 + int(zone[3:5]) * 60) * (-1 if zone[:1] == b"-" else 1)
    return float(timegm((year, month, day, hour, 0, 0)) - offset_s)
