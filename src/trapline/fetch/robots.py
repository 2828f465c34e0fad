"""robots.txt read by RFC 9309: from its bytes to the rules that hold for us. Step 5 of the way of a URL.

It does not fetch, and does not know what it means that there is no file (robots_answer.py).

The file is lines of `name: value`. A *group* is one or more user-agent lines and the rules after them; all groups that name us
are one, and if there is none, all that name `*`. Nothing in such a file is an error: what is not understood is skipped. Where the RFC
leaves it open we read as Google's parser does, whose conformance cases are our test: docs/decisions/016-robots.md.
"""

import re
from collections.abc import Iterator

from trapline.fetch.robots_rules import ALLOW_ALL, DISALLOW_ALL, Line, Robots

__all__ = ["ALLOW_ALL", "DISALLOW_ALL", "LIMIT_BYTES", "Robots", "parse", "product_token", "written"]

LIMIT_BYTES = 500 * 1024  # RFC 9309, 2.5: a parser reads at least this much
MOST_DELAY_S = 86_400.0

_USER_AGENT, _ALLOW, _DISALLOW, _DELAY, _SITEMAP = range(5)
_MEANINGS = {
    b"user-agent": _USER_AGENT,
    b"allow": _ALLOW,
    b"disallow": _DISALLOW,
    b"crawl-delay": _DELAY,
    b"sitemap": _SITEMAP,
    # Misspellings that Google's parser accepts (github.com/google/robotstxt, robots.cc): what the site wants is plain.
    **dict.fromkeys((b"useragent", b"user agent"), _USER_AGENT),
    **dict.fromkeys((b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"), _DISALLOW),
    b"site-map": _SITEMAP,
}
_INDEX_PAGE = "/index.html"
_MARKS_OF_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+")
_TOKEN = re.compile(r"[A-Za-z_-]*")


def parse(body: bytes, agent: str) -> Robots:
    """What the file says to the crawler whose product token is `agent`.

    >>> robots = parse(b"User-agent: *\\nDisallow: /cgi-bin/\\nCrawl-delay: 2.5", "trapline")
    >>> robots.allows("/cgi-bin/search?q=1"), robots.allows("/"), robots.crawl_delay_s
    (False, True, 2.5)
    """
    reading = _Reading(agent)
    for meaning, value in _records(body):
        reading.take(meaning, value)
    group = reading.ours if reading.ours.named else reading.everyones
    if not (group.rules or group.delay_s is not None or reading.sitemaps):
        return ALLOW_ALL
    return Robots(group.lines(), group.delay_s, tuple(reading.sitemaps))


def written(robots: Robots) -> bytes:
    """A robots.txt that says the same to us, and nothing of sitemaps.

    >>> written(parse(b"User-agent: trapline\\nDisallow: /a*b$\\nUser-agent: *\\nDisallow: /", "trapline"))
    b'User-agent: *\\nDisallow: /a*b$\\n'
    """
    lines = ["User-agent: *"]
    if robots.crawl_delay_s is not None:
        lines.append(f"Crawl-delay: {robots.crawl_delay_s:f}")
    lines += (f"{'Allow' if line.allow else 'Disallow'}: {line.pattern}" for line in robots.lines())
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def product_token(user_agent: str) -> str:
    """The name by which a robots.txt may address this user agent: letters, `-` and `_` (RFC 9309, 2.2.1).

    >>> product_token("trapline/0.1 (+https://example.org/crawler)")
    'trapline'
    """
    found = _TOKEN.match(user_agent)
    return found[0] if found else ""


class _Group:
    def __init__(self) -> None:
        self.named = False
        # Equal ones once, as (allow, pattern): files may be one line over and over.
        self.rules: dict[tuple[bool, str], None] = {}
        self.delay_s: float | None = None

    def rule(self, allow: bool, pattern: str) -> None:
        self.rules[allow, pattern] = None
        if allow and pattern.endswith(_INDEX_PAGE):
            # Google's rule: who allows index.html means its folder too.
            self.rules[True, pattern.removesuffix(_INDEX_PAGE) + "/$"] = None

    def lines(self) -> Iterator[Line]:
        return (Line(allow, pattern) for allow, pattern in self.rules)


class _Reading:
    """What was read so far; `open` are those of our two groups that the next rule belongs to."""

    def __init__(self, agent: str) -> None:
        self.agent = agent.lower()
        self.ours = _Group()
        self.everyones = _Group()
        self.open: set[_Group] = set()
        self.among_rules = False
        self.sitemaps: dict[str, None] = {}

    def take(self, meaning: int, value: str) -> None:
        if meaning == _USER_AGENT:
            self._user_agent(value)
        elif meaning == _SITEMAP:
            self.sitemaps[value] = None
        elif meaning == _DELAY:
            self._delay(value)
        else:
            self.among_rules = True
            for group in self.open:
                group.rule(meaning == _ALLOW, value)

    def _user_agent(self, value: str) -> None:
        if self.among_rules:
            self.open.clear()
            self.among_rules = False
        token = product_token(value).lower()
        if value.split(maxsplit=1)[:1] == ["*"]:
            self.open.add(self.everyones)
        elif token and token == self.agent:
            self.ours.named = True
            self.open.add(self.ours)

    def _delay(self, value: str) -> None:
        """Not a rule of the RFC, so it does not end the user-agent lines of a group (2.2.4). The longest of several counts."""
        number = _NUMBER.match(value)
        if number:
            delay_s = min(float(number[0]), MOST_DELAY_S)
            for group in self.open:
                group.delay_s = max(delay_s, group.delay_s or 0.0)


def _records(body: bytes) -> Iterator[tuple[int, str]]:
    """The lines that mean something: what, and the value with its octets as characters."""
    for line in whole_lines(body).splitlines():
        name, colon, value = line.partition(b"#")[0].partition(b":")
        if not colon:
            words = name.split()
            if len(words) != 2:
                continue
            name, value = words  # the colon was forgotten
        meaning = _MEANINGS.get(name.strip().lower())
        if meaning is not None:
            yield meaning, value.strip().decode("latin-1")


def whole_lines(body: bytes) -> bytes:
    """As much as we read, in UTF-8. A line that the limit cuts is dropped: half of `/a` is `/`."""
    text = _in_utf8(body[:LIMIT_BYTES])
    return text if len(body) < LIMIT_BYTES else text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]


def _in_utf8(body: bytes) -> bytes:
    """Without UTF-8's byte order mark, or the part of it that somebody left; and from UTF-16, if it begins with the mark of that."""
    if body.startswith(_MARKS_OF_UTF_16):
        return body.decode("utf-16", "replace").encode()
    for octet in b"\xef\xbb\xbf":
        body = body.removeprefix(bytes((octet,)))
    return body
