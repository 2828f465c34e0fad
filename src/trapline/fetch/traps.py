"""Spider traps: URLs that a server makes up without end. Told from the URL alone, so some pass and few are wronged.

Step 1 of the way of a URL, asked by the scope (crawl/scope.py) of URLs in canonical form. It keeps no state: that a site has
made too many pages in all is for limits of depth and of pages per site to say. Calendars are left to those, too: nothing
in the URL of a far year tells it from an archive.

What each rule catches of really crawled traps, and what it costs on real graphs: docs/decisions/017.
"""

import re

DEEP, REPEATED, SCRIPTS, PARAMETERS = "deep", "repeated", "scripts", "parameters"

MOST_SEGMENTS = 15  # of a path; Heritrix lets 20 pass
MOST_SAME = 2  # times that one segment, unless it is a number, may stand in a path
MOST_SURPLUS = 3  # segments that stood in the path before, all together; Java's sources have up to three
MOST_SCRIPTS = 1  # files such as index.php with more path behind them: a relative link from there makes another
MOST_PARAMETERS = 20
MOST_SAME_PARAMETERS = 2  # times that one name with one value may be given

_FEW_SLASHES = 5  # of a URL whose path has up to three segments, which is most; only three alike would be a trap
_SCRIPT = re.compile(r"\.(?:php|aspx?|jsp|html?|cgi)/")


def trap(url: str) -> str:
    """Why a URL looks like one of a trap: one of the four words above; "" if it does not.

    >>> trap("http://example.org/a/b/a/b/a/b/"), trap("http://example.org/index.php/about.php/index.php/x")
    ('repeated', 'scripts')
    >>> trap("http://example.org/2010/10/10/") or trap("http://example.org/shop?tag[]=1&tag[]=2&tag[]=3")
    ''
    """
    path, _, query = url.partition("?")
    if path.count("/") >= _FEW_SLASHES and (reason := _of_path(path)):
        return reason
    return _of_query(query.split("&")) if query.count("&") >= MOST_SAME_PARAMETERS else ""


def _of_path(path: str) -> str:
    segments = path.split("/")[3:]
    if len(segments) > MOST_SEGMENTS:
        return DEEP
    if len(segments) - len(set(segments)) >= MOST_SAME and _is_repeated([s for s in segments if not s.isdigit()]):
        return REPEATED
    return SCRIPTS if len(_SCRIPT.findall(path)) > MOST_SCRIPTS else ""


def _is_repeated(segments: list[str]) -> bool:
    distinct = set(segments)
    if len(segments) - len(distinct) > MOST_SURPLUS:
        return True
    return any(segments.count(segment) > MOST_SAME for segment in distinct)


def _of_query(parameters: list[str]) -> str:
    if len(parameters) > MOST_PARAMETERS:
        return PARAMETERS
    if len(set(parameters)) == len(parameters):
        return ""
    return PARAMETERS if any(parameters.count(one) > MOST_SAME_PARAMETERS for one in set(parameters)) else ""
