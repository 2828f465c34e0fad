"""The rules of one robots.txt that hold for us, and whether they let us fetch a page. Step 5 of the way of a URL: asked
before every request.

It does not know where the rules come from (robots.py) or for how long they hold (robots_answer.py).

RFC 9309, 2.2.2 and 2.2.3: of all rules that match, the one with the most octets decides; of two equal ones the one that
allows; nothing matches: allowed. `*` stands for any octets, `$` at the end for the end of the path.

A *rank* is all of that in one number: twice the octets, plus one if it allows. So the largest rank decides, and its last bit is
the answer. Nothing here backtracks: pieces between `*` are looked for from left to right, each once, which finds a match
whenever there is one. Most rules have no `*` inside, and are found by looking up the beginnings of the path, however many rules there are.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# What all rules with `*` inside may cost one page: their pieces times the length of its path. Above it the page is not allowed,
# for such a file is written to keep us busy. 5,000 rules of three pieces stay below it up to a path of 266 characters.
MOST_WORK = 4_000_000

_NOTHING_MATCHES = 1  # zero octets, allowed

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

# What is not in normal form: octets that no URL may contain, the two signs with a meaning of their own, escapes of unreserved
# characters, and escapes in small letters. The canonical URLs that we are asked about are ASCII; rules may be anything.
_ODD = re.compile(
    r'[\x00-\x20"<>\\^`{|}\x7f-\xff*$]'
    r"|%(?:2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee]|[0-9A-Fa-f][a-f]|[a-f][0-9A-Fa-f])"
)
_PERHAPS_ODD = re.compile(r'[\x00-\x20"<>\\^`{|}\x7f-\xff*$%]')  # ten times as fast


class Line(NamedTuple):
    """A rule as written, its octets as the characters 0 to 255."""

    allow: bool
    pattern: str


class _Wild(NamedTuple):
    """A rule with `*` inside: it begins with `head`, has `middles` in this order, and ends with `tail`."""

    rank: int
    longest: str  # of its pieces: where this is missing, the rest need not be looked at
    head: str
    middles: tuple[str, ...]
    tail: str

    def matches(self, target: str) -> bool:
        if not (target.startswith(self.head) and target.endswith(self.tail)):
            return False
        at = len(self.head)
        for middle in self.middles:
            at = target.find(middle, at) + len(middle)
            if at < len(middle):  # find said -1
                return False
        return at + len(self.tail) <= len(target)


class Robots:
    """What one robots.txt says to us.

    >>> Robots([Line(False, "/private"), Line(True, "/private/*.html$")]).allows("/private/a.html")
    True
    """

    __slots__ = ("_beginnings", "_free", "_lengths", "_pieces", "_whole", "_wild", "crawl_delay_s", "sitemaps")

    def __init__(
        self, lines: Iterable[Line] = (), crawl_delay_s: float | None = None, sitemaps: tuple[str, ...] = ()
    ) -> None:
        self.crawl_delay_s = crawl_delay_s
        self.sitemaps = sitemaps
        self._beginnings: dict[str, int] = {}  # the path begins so: rank
        self._whole: dict[str, int] = {}  # the path is so: rank
        wild: set[_Wild] = set()
        for line in lines:
            self._add(line, wild)
        self._wild = tuple(sorted(wild, reverse=True))
        self._pieces = sum(2 + len(rule.middles) for rule in wild)
        self._lengths = tuple(sorted({len(beginning) for beginning in self._beginnings}))
        self._free = not (self._beginnings or self._whole or self._wild)

    def allows(self, target: str) -> bool:
        """Whether we may fetch it; `target` is path and query of a canonical URL. robots.txt itself we always may."""
        if self._free:
            return True
        return bool(self._decide(_normal(target)) & 1) or target == "/robots.txt"

    def lines(self) -> Iterator[Line]:
        """Rules that say the same. The octets of a rank that are in no piece were `*` beside others, or at the end."""
        for head, rank in self._beginnings.items():
            yield _line(rank, head, "")
        for head, rank in self._whole.items():
            yield _line(rank, head, "$")
        for rule in self._wild:
            yield _line(rule.rank, "*".join((rule.head, *rule.middles)), f"*{rule.tail}$" if rule.tail else "")

    def _decide(self, target: str) -> int:
        """The largest rank among the rules that match."""
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
            if rule[0] <= best:  # by position, as by name takes twice as long
                break
            if rule[1] in target and rule.matches(target):
                return rule.rank
        return best

    def _add(self, line: Line, wild: set[_Wild]) -> None:
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


def _line(rank: int, begin: str, end: str) -> Line:
    stars = (rank >> 1) - len(begin) - len(end)
    return Line(bool(rank & 1), begin + "*" * stars + end)


def _normal(text: str) -> str:
    """The form in which paths are compared: escaped is what must be, in capitals, and nothing else."""
    return _ODD.sub(_escape_or_not, text) if _PERHAPS_ODD.search(text) else text


def _escape_or_not(odd: re.Match[str]) -> str:
    found = odd[0]
    if len(found) == 1:
        return f"%{ord(found):02X}"
    character = chr(int(found[1:], 16))
    return character if character in _UNRESERVED else found.upper()


ALLOW_ALL = Robots()
DISALLOW_ALL = Robots([Line(False, "/")])
