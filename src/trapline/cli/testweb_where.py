"""What `trapline testweb` says when it serves: where, which sites tell what, and what to type next."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from trapline.terminal import say, say_text
from trapline.units import counted

if TYPE_CHECKING:
    from trapline.testweb import Web

_ENDPOINT = "http://127.0.0.1:8642/indexnow"  # of `trapline refresh serve`, unless it is told otherwise


def say_where(web: "Web", hosts: Path, urls: Path, endpoint: str | None, as_json: bool) -> None:
    """`endpoint`: where sites ping; None: nowhere."""
    if as_json:
        about = {"port": web.port, "sites": web.sites, "pages": web.pages, "addresses": len(web.addresses)}
        levels = {"levels": _levels(web)} if web.providers else {}
        say(json.dumps({**about, **levels, "hosts_file": str(hosts), "urls_file": str(urls)}))
        return
    resolve = "" if web.names[0] in web.addresses else f" --hosts {hosts}"
    again = " --continuous" if web.changes else ""
    say_text(
        f"serving {counted(web.sites, 'site')}, {counted(web.pages, 'page')} on port {web.port} of "
        f"{_range(web.addresses)}, such as {web.seed_urls[0]}\n"
        f"{_providers(web, endpoint)}names and addresses: {hosts}; home pages: {urls}\n"
        f"crawl it:  trapline crawl --seeds {urls}{resolve} --allow-private{again} -o DIR\n"
        "Ctrl-C ends it"
    )


def _levels(web: "Web") -> dict[str, int]:
    """Sites by what they tell, in the order of the levels."""
    from trapline.testweb import LEVELS

    numbers = Counter(web.providers.level if web.providers else ())
    return {name: numbers[name] for name in LEVELS if numbers[name]}


def _providers(web: "Web", endpoint: str | None) -> str:
    """Who tells what, and a ping to try by hand: it is as good as one of the site's own."""
    from trapline.testweb.providers import PINGING
    from trapline.testweb.published import key

    told = ", ".join(f"{sites:,} {name}" for name, sites in _levels(web).items())
    if not told:
        return ""
    site = next((site for site in range(web.sites) if web.level(site) in PINGING), None)
    where = endpoint or _ENDPOINT
    ping = (
        ""
        if site is None
        else f"ping it:   curl '{where}?url={quote(web.seed_urls[site], safe='')}&key={key(web, site)}'\n"
    )
    return f"sites by what they tell: {told}\n{ping}"


def _range(addresses: list[str]) -> str:
    return addresses[0] if len(addresses) == 1 else f"{addresses[0]} to {addresses[-1]}"
