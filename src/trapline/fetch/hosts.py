"""The format of hosts files: an address, then the names it answers to, a line each; `#` begins a comment. Step 5 of the way of a URL.

What is in it is asked before DNS (dns.py); `testweb` writes one for the sites that it serves. It does not judge addresses (address.py).
"""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path

from trapline.errors import ConfigError


def read_hosts(path: Path) -> dict[str, tuple[str, ...]]:
    """The addresses of each name in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as a hosts file: {error}") from error
    return parse_hosts(text, str(path))


def parse_hosts(text: str, source: str) -> dict[str, tuple[str, ...]]:
    """The addresses of each name, names in small letters; one on several lines has the addresses of all of them.

    >>> parse_hosts("127.0.0.2 a.test www.a.test  # two names", "hosts")
    {'a.test': ('127.0.0.2',), 'www.a.test': ('127.0.0.2',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for row, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words:
            address = _address(words, f"{source}, line {row}")
            for name in words[1:]:
                name = name.lower().removesuffix(".")
                found[name] = (*found.get(name, ()), address)
    return found


def hosts_text(addresses: Mapping[str, Sequence[str]]) -> str:
    """The file that says so.

    >>> hosts_text({"a.test": ["127.0.0.2"]})
    '127.0.0.2 a.test\\n'
    """
    return "".join(f"{address} {name}\n" for name, several in addresses.items() for address in several)


def _address(words: list[str], where: str) -> str:
    try:
        address = str(ip_address(words[0]))
    except ValueError:
        raise ConfigError(f"{where}: a line begins with an address, and {words[0]!r} is none") from None
    if len(words) < 2:
        raise ConfigError(f"{where}: no name after the address {address}")
    return address
