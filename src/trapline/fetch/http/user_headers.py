"""Headers that the user adds to requests: which are accepted, and which belong elsewhere. Part of step 5 in docs/architecture.md.

Such headers are options of the crawl. Its folder keeps them, and they are recorded with each request. Headers with secrets are
therefore refused here; they belong in the file of credentials (credentials.py) or of cookies (cookies.py).
"""

import re
from collections.abc import Iterable

from trapline.errors import ConfigError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token of RFC 9110
# Headers that the crawler sets itself, because it depends on their values.
_OURS = frozenset(
    {
        *("host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
        *("content-length", "content-type", "expect", "range", "accept-encoding"),
    }
)
_SECRET = re.compile(r"auth(?!ors?(?:-|$))|cookie|passw|secret|token|credential|session|api[-_]?key", re.IGNORECASE)


def read_header(text: str, where: str = "--header") -> tuple[str, str]:
    """Return name and value of a header in the form NAME:VALUE. Raise `ConfigError` if it cannot be sent or does not belong here.

    >>> read_header("Accept-Language: de, en")
    ('Accept-Language', 'de, en')
    """
    name, colon, value = text.partition(":")
    name, value = name.strip(" \t"), value.strip(" \t")
    if not colon or not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: not a header; give NAME:VALUE, such as 'Accept-Language: de'")
    lower = name.lower()
    if lower == "user-agent":
        raise ConfigError(f"{where} {name}: give --user-agent instead")
    if lower == "cookie":
        raise ConfigError(
            f"{where} {name}: the value would be visible to others; give a cookie file with --cookies FILE"
        )
    if _SECRET.search(name):
        raise ConfigError(
            f"{where} {name}: a secret would be visible to others; put it into a file for --credentials FILE"
        )
    check_not_ours(name, where)
    check_value(name, value, where)
    return name, value


def check_not_ours(name: str, where: str) -> None:
    """Raise `ConfigError` if the crawler sets this header itself."""
    if name.lower() in _OURS or name.lower().startswith("if-"):
        raise ConfigError(f"{where} {name}: the crawler sets this header itself; omit it")


def check_value(name: str, value: str, where: str) -> None:
    """Raise `ConfigError` unless the value is one line of printable ASCII. The message does not have the value, which may be a
    secret."""
    if not (value.isascii() and value.isprintable()):
        of = f" {name}" if name else ""
        raise ConfigError(f"{where}{of}: the value must be one line of printable ASCII characters; correct it")


def read_headers(texts: Iterable[str], where: str = "--header") -> dict[str, str]:
    """Return headers by name. Raise `ConfigError` if one is invalid, or given twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, value = read_header(text, where)
        if name.lower() in map(str.lower, found):
            raise ConfigError(f"{where} {name}: given twice; give it once, with its values separated by commas")
        found[name] = value
    return found


def merged(*groups: dict[str, str]) -> dict[str, str]:
    """Return the headers of all groups. A header of a later group replaces that of an earlier one, in its place.

    >>> merged({"Accept": "*/*", "User-Agent": "x"}, {"accept": "text/html", "DNT": "1"})
    {'Accept': 'text/html', 'User-Agent': 'x', 'DNT': '1'}
    """
    names: dict[str, str] = {}
    found: dict[str, str] = {}
    for group in groups:
        for name, value in group.items():
            found[names.setdefault(name.lower(), name)] = value
    return found


def check_user_agent(user_agent: str, contact: str, token: str) -> None:
    """Raise `ConfigError` unless these can be sent, and robots.txt files can name the token."""
    check_value("", user_agent, "--user-agent")
    check_value("", contact, "--contact")
    if not re.fullmatch(r"[A-Za-z_-]+", token):
        raise ConfigError(
            f"--robots-token {token!a}: a product token has letters, '-' and '_' only (RFC 9309); give one such as my-bot"
        )
