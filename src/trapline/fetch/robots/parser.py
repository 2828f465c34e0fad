"""robots.txt: the parser, and the rules of one file that apply to this crawler. Step 5 in docs/architecture.md: checked before
every request.

The rules do not know how long they are valid (answer.py).

RFC 9309, 2.2.2 and 2.2.3: of all rules that match, the one with the most octets decides; of two equal ones, the one that
allows; if none matches, the page is allowed. `*` stands for any octets, `$` at the end for the end of the path.

A *rank* expresses all of that in one number: twice the octets, plus one if the rule allows. So the largest rank decides, and its
last bit is the decision. Nothing here backtracks: the pieces between `*` are searched from left to right, each once, which finds a
match whenever there is one. Most rules have no `*` inside; these are found by looking up prefixes of the path in a dict, however
many rules there are.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Most work that all rules with `*` inside may cost for one page: their pieces times the length of its path. Beyond that the page is
# disallowed, because such a file is meant to keep the crawler busy. 5,000 rules of three pieces stay within it up to a path of 266
# characters.
MOST_WORK = 4_000_000

_NOTHING_MATCHES = 1  # zero octets, allowed

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

# What is not in normal form: octets that no URL may contain, the two special characters, escapes of unreserved characters, and
# escapes in lower case. The canonical URLs to be checked are ASCII; rules may be anything.
_ODD = re.compile(
    r'[\x00-\x20"<>\\^`{|}\x7f-\xff*$]'
    r"|%(?:2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee]|[0-9A-Fa-f][a-f]|[a-f][0-9A-Fa-f])"
)
_PERHAPS_ODD = re.compile(r'[\x00-\x20"<>\\^`{|}\x7f-\xff*$%]')  # a first test, ten times as fast


class RuleLine(NamedTuple):
    """A rule as written, with its octets as the characters 0 to 255 (Latin-1)."""

    allow: bool
    pattern: str


class _Wild(NamedTuple):
    """A rule with `*` inside: a matching path begins with `head`, contains `middles` in this order, and ends with `tail`."""

    rank: int
    longest: str  # the longest piece: a path without it cannot match
    head: str
    middles: tuple[str, ...]
    tail: str

    def matches(self, target: str) -> bool:
        if not (target.startswith(self.head) and target.endswith(self.tail)):
            return False
        at = len(self.head)
        for middle in self.middles:
            at = target.find(middle, at) + len(middle)
            if at < len(middle):  # `find` returned -1
                return False
        return at + len(self.tail) <= len(target)


class Robots:
    """The rules of one robots.txt that apply to this crawler.

    >>> Robots([RuleLine(False, "/private"), RuleLine(True, "/private/*.html$")]).allows("/private/a.html")
    True
    """

    __slots__ = ("_beginnings", "_free", "_lengths", "_pieces", "_whole", "_wild", "crawl_delay_s", "sitemaps")

    def __init__(
        self, lines: Iterable[RuleLine] = (), crawl_delay_s: float | None = None, sitemaps: tuple[str, ...] = ()
    ) -> None:
        self.crawl_delay_s = crawl_delay_s
        self.sitemaps = sitemaps
        self._beginnings: dict[str, int] = {}  # prefix of a path: rank
        self._whole: dict[str, int] = {}  # whole path: rank
        wild: set[_Wild] = set()
        for line in lines:
            self._add(line, wild)
        self._wild = tuple(sorted(wild, reverse=True))
        self._pieces = sum(2 + len(rule.middles) for rule in wild)
        self._lengths = tuple(sorted({len(beginning) for beginning in self._beginnings}))
        self._free = not (self._beginnings or self._whole or self._wild)

    def allows(self, target: str) -> bool:
        """Return whether `target`, path and query of a canonical URL, may be fetched. robots.txt itself is always allowed."""
        if self._free:
            return True
        return bool(self._decide(_normal(target)) & 1) or target == "/robots.txt"

    def lines(self) -> Iterator[RuleLine]:
        """Yield equivalent rules. Octets counted in a rank but missing in the pieces were redundant `*`, and are added as such."""
        for head, rank in self._beginnings.items():
            yield _line(rank, head, "")
        for head, rank in self._whole.items():
            yield _line(rank, head, "$")
        for rule in self._wild:
            yield _line(rule.rank, "*".join((rule.head, *rule.middles)), f"*{rule.tail}$" if rule.tail else "")

    def _decide(self, target: str) -> int:
        """Return the largest rank among the rules that match."""
        best = self._whole.get(target, _NOTHING_MATCHES)
        beginnings = self._beginnings
        for length in self._lengths:
            rank = beginnings.get(target[:length], 0)
            if rank > best:
                best = rank
        return self._decide_wild(target, best) if self._wild else best

    def _decide_wild(self, target: str, best: int) -> int:
        if self._pieces * len(target) > MOST_WORK:
            return 0
        for rule in self._wild:
            if rule[0] <= best:  # by index: access by name takes twice as long
                break
            if rule[1] in target and rule.matches(target):
                return rule.rank
        return best

    def _add(self, line: RuleLine, wild: set[_Wild]) -> None:
        anchored = line.pattern.endswith("$")
        head, *rest = [_normal(piece) for piece in line.pattern.removesuffix("$").split("*")]
        rank = 2 * (len(head) + sum(map(len, rest)) + len(rest) + anchored) + line.allow
        tail = rest.pop() if anchored and rest else None
        middles = tuple(piece for piece in rest if piece)
        if tail is not None or middles:
            longest = max((head, *middles, tail or ""), key=len)
            wild.add(_Wild(rank, longest, head, middles, tail or ""))
        else:
            rules = self._whole if anchored else self._beginnings
            rules[head] = max(rank, rules.get(head, 0))


def _line(rank: int, begin: str, end: str) -> RuleLine:
    stars = (rank >> 1) - len(begin) - len(end)
    return RuleLine(bool(rank & 1), begin + "*" * stars + end)


def _normal(text: str) -> str:
    """Return the form in which paths are compared: only what must be escaped is escaped, in upper case."""
    return _ODD.sub(_escape_or_not, text) if _PERHAPS_ODD.search(text) else text


def _escape_or_not(odd: re.Match[str]) -> str:
    found = odd[0]
    if len(found) == 1:
        return f"%{ord(found):02X}"
    character = chr(int(found[1:], 16))
    return character if character in _UNRESERVED else found.upper()


ALLOW_ALL = Robots()
DISALLOW_ALL = Robots([RuleLine(False, "/")])


# ---- Parser of RFC 9309: from the bytes of a robots.txt to the rules that apply to this crawler.
#
# The parser does not fetch, and does not know what a missing file means (answer.py).
#
# The file consists of lines `name: value`. A *group* is one or more user-agent lines and the rules after them. All groups that name this
# crawler are merged; if there is none, all groups that name `*`. Nothing in such a file is an error: the parser skips what it does not
# understand. Where the RFC leaves a choice, it does the same as Google's parser, whose conformance cases are our tests:
# docs/decisions/016-robots.md.

__all__ = ["ALLOW_ALL", "DISALLOW_ALL", "LIMIT_BYTES", "Robots", "parse", "product_token", "written"]

LIMIT_BYTES = 500 * 1024  # RFC 9309, 2.5: a parser must read at least this much
MOST_DELAY_S = 86_400.0

_USER_AGENT, _ALLOW, _DISALLOW, _DELAY, _SITEMAP = range(5)
_MEANINGS = {
    b"user-agent": _USER_AGENT,
    b"allow": _ALLOW,
    b"disallow": _DISALLOW,
    b"crawl-delay": _DELAY,
    b"sitemap": _SITEMAP,
    # Misspellings that Google's parser accepts (github.com/google/robotstxt, robots.cc), because the intention is clear.
    **dict.fromkeys((b"useragent", b"user agent"), _USER_AGENT),
    **dict.fromkeys((b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"), _DISALLOW),
    b"site-map": _SITEMAP,
}
_INDEX_PAGE = "/index.html"
_MARKS_OF_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+")
_TOKEN = re.compile(r"[A-Za-z_-]*")


def parse(body: bytes, agent: str) -> Robots:
    """Parse the rules that apply to the crawler with the product token `agent`.

    >>> robots = parse(b"User-agent: *\\nDisallow: /cgi-bin/\\nCrawl-delay: 2.5", "trapline")
    >>> robots.allows("/cgi-bin/search?q=1"), robots.allows("/"), robots.crawl_delay_s
    (False, True, 2.5)
    """
    reading = _RobotsReading(agent)
    for meaning, value in _records(body):
        reading.take(meaning, value)
    group = reading.ours if reading.ours.named else reading.everyones
    if not (group.rules or group.delay_s is not None or reading.sitemaps):
        return ALLOW_ALL
    return Robots(group.lines(), group.delay_s, tuple(reading.sitemaps))


def written(robots: Robots) -> bytes:
    """Return a robots.txt with equivalent rules for this crawler, without sitemaps.

    >>> written(parse(b"User-agent: trapline\\nDisallow: /a*b$\\nUser-agent: *\\nDisallow: /", "trapline"))
    b'User-agent: *\\nDisallow: /a*b$\\n'
    """
    lines = ["User-agent: *"]
    if robots.crawl_delay_s is not None:
        lines.append(f"Crawl-delay: {robots.crawl_delay_s:f}")
    lines += (f"{'Allow' if line.allow else 'Disallow'}: {line.pattern}" for line in robots.lines())
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def product_token(user_agent: str) -> str:
    """Return the name by which a robots.txt may address this user agent: letters, `-` and `_` (RFC 9309, 2.2.1).

    >>> product_token("trapline/0.1 (+https://example.org/crawler)")
    'trapline'
    """
    found = _TOKEN.match(user_agent)
    return found[0] if found else ""


class _Group:
    def __init__(self) -> None:
        self.named = False
        # (allow, pattern), equal ones once: a file may repeat one line many times.
        self.rules: dict[tuple[bool, str], None] = {}
        self.delay_s: float | None = None

    def rule(self, allow: bool, pattern: str) -> None:
        self.rules[allow, pattern] = None
        if allow and pattern.endswith(_INDEX_PAGE):
            # As in Google's parser: a rule that allows index.html also allows its folder.
            self.rules[True, pattern.removesuffix(_INDEX_PAGE) + "/$"] = None

    def lines(self) -> Iterator[RuleLine]:
        return (RuleLine(allow, pattern) for allow, pattern in self.rules)


class _RobotsReading:
    """State of the parser. `open` holds those of the two groups, `ours` and `everyones`, that the next rule belongs to."""

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
        """Take a Crawl-delay. It is not a rule of the RFC, so it does not end the user-agent lines of a group (2.2.4).

        Of several delays, the longest counts.
        """
        number = _NUMBER.match(value)
        if number:
            delay_s = min(float(number[0]), MOST_DELAY_S)
            for group in self.open:
                group.delay_s = max(delay_s, group.delay_s or 0.0)


def _records(body: bytes) -> Iterator[tuple[int, str]]:
    """Yield the meaning and value of each line that is understood, with the value's octets as characters (Latin-1)."""
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
    """Return the part of the file that is read, in UTF-8. Drops a line that the limit truncates: half of `/a` would be `/`."""
    text = _in_utf8(body[:LIMIT_BYTES])
    return text if len(body) < LIMIT_BYTES else text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]


def _in_utf8(body: bytes) -> bytes:
    """Convert to UTF-8: removes a byte order mark of UTF-8, even an incomplete one, and decodes UTF-16 if it has its mark."""
    if body.startswith(_MARKS_OF_UTF_16):
        return body.decode("utf-16", "replace").encode()
    for octet in b"\xef\xbb\xbf":
        body = body.removeprefix(bytes((octet,)))
    return body
