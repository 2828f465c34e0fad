"""`trapline refresh subscribe`: have a topic's hub tell us of its changes. The hub is found here; a running endpoint talks to it."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.numbers import seconds
from trapline.cli.refresh_serve import sites_of
from trapline.errors import ConfigError
from trapline.terminal import say
from trapline.units import duration

if TYPE_CHECKING:
    from trapline.signals.small_fetch import SmallFetch
    from trapline.signals.subscriptions import Subscription, Subscriptions
    from trapline.signals.websub import Place

_TOPIC_BYTES = 1024 * 1024
_LOOK_S = 0.2
_FILE = click.Path(path_type=Path)
_HOSTS = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("folder", metavar="DIR", type=_FILE)
@click.argument("url", required=False)
@click.option("--leave", is_flag=True, help="End the subscription.")
@click.option("--allow-private", is_flag=True, help="Topics and hubs on loopback and private addresses too.")
@click.option("--insecure", is_flag=True, help="Take any TLS certificate.")
@click.option("--hosts", "hosts_file", type=_HOSTS, metavar="FILE", help="Addresses of names, as in /etc/hosts.")
@click.option("--wait", "wait_s", type=seconds(), default=15.0, help="For the hub's answer. [15 s]")
def subscribe(
    folder: Path,
    url: str | None,
    leave: bool,
    allow_private: bool,
    insecure: bool,
    hosts_file: Path | None,
    wait_s: float,
) -> None:
    """Be told of changes of the page or feed at URL by its WebSub hub; without URL, say what is subscribed to.

    URL names its hub in its Link headers, its HTML head, or its feed. What asks the hub is a running
    `trapline refresh serve DIR --public-url ...`. A TIME is in seconds, or with a unit: 2min.
    """
    from trapline.signals.subscriptions import Subscriptions

    sites_of(folder)  # it is a crawl's
    subscriptions = Subscriptions(folder)
    try:
        if url is None:
            _list(subscriptions, folder)
        elif leave:
            _leave(subscriptions, _canonical(url))
        else:
            place = _place(folder, _canonical(url), allow_private, insecure, hosts_file)
            subscriptions.want(place.topic, place.hub, time.time())
            _report(_waited(subscriptions, place.topic, wait_s), folder)
    finally:
        subscriptions.close()


def _canonical(url: str) -> str:
    from trapline.fetch.urls import canonical

    found = canonical(url)
    if found is None:
        raise ConfigError(f"{url}: not a URL of http or https")
    return found


def _place(folder: Path, url: str, allow_private: bool, insecure: bool, hosts_file: Path | None) -> "Place":
    """The topic and its hub. A page may name another URL as its own: then that one is asked, and must say the same."""
    from trapline.fetch.address import Guard
    from trapline.fetch.dns import Resolver
    from trapline.fetch.hosts import read_hosts
    from trapline.fetch.tls import tls_context
    from trapline.signals.sites_known import SitesKnown, authority_of
    from trapline.signals.small_fetch import SmallFetch

    async def both() -> "Place":
        resolver = Resolver(read_hosts(hosts_file) if hosts_file else {})
        fetch = SmallFetch(resolver, Guard(allow_private), tls_context(insecure))
        try:
            place = await _named_by(fetch, url)
            return place if place.topic == url else await _confirmed(fetch, place)
        finally:
            await resolver.close()

    place = asyncio.run(both())
    if authority_of(place.topic) not in SitesKnown(sites_of(folder)):
        raise ConfigError(
            f"{place.topic}: the crawl in {folder} does not know this site, and could do nothing with signals"
        )
    if not place.hub.startswith("https://") and not allow_private:
        raise ConfigError(f"{place.topic}: its hub {place.hub} is not on https")
    return place


async def _named_by(fetch: "SmallFetch", url: str) -> "Place":
    from trapline.signals.websub import discovered

    answer = await fetch.get(url, _TOPIC_BYTES)
    if answer.status != 200:
        raise ConfigError(f"{url}: cannot be had: {_why(answer.failure) or f'the server answered {answer.status}'}")
    place = discovered(answer.url, answer.headers, answer.body)
    if place is None:
        raise ConfigError(f"{url}: names no hub, neither in Link headers nor in its head")
    return place


def _why(kind: str) -> str:
    """A kind of failure, for people."""
    from trapline.fetch.failure import ADDRESS, DNS
    from trapline.report.live_table import KINDS

    private = "its address is private or loopback; if that is what you want, give --allow-private"
    return {**KINDS, DNS: "its name has no address", ADDRESS: private}.get(kind, kind)


async def _confirmed(fetch: "SmallFetch", place: "Place") -> "Place":
    again = await _named_by(fetch, place.topic)
    if again.topic != place.topic:
        raise ConfigError(f"{place.topic}: calls itself {again.topic}; name that URL")
    return again


def _waited(subscriptions: "Subscriptions", topic: str, wait_s: float) -> "Subscription":
    """As it stands when the hub has answered, or when the time is over."""
    until = time.monotonic() + wait_s
    while True:
        one = subscriptions.of_topic(topic)
        assert one is not None
        if one.state in ("active", "denied") or time.monotonic() >= until:
            return one
        time.sleep(_LOOK_S)


def _report(one: "Subscription", folder: Path) -> None:
    if one.state == "denied":
        raise ConfigError(f"{one.topic}: the hub {one.hub} refuses: {one.why}")
    if one.state == "wanted":
        say(f"{one.topic}: wanted; run: trapline refresh serve {folder} --public-url URL")
    else:
        say(_row(one))


def _leave(subscriptions: "Subscriptions", topic: str) -> None:
    if not subscriptions.leave(topic, time.time()):
        raise ConfigError(f"{topic}: there is no such subscription")
    say(f"{topic}: will be left")


def _list(subscriptions: "Subscriptions", folder: Path) -> None:
    found = list(subscriptions.all())
    for one in found:
        say(_row(one))
    if not found:
        say(f"no subscriptions yet; to have one: trapline refresh subscribe {folder} URL")


def _row(one: "Subscription") -> str:
    left = f" for {duration(one.expires - time.time())}" if one.state == "active" else ""
    return f"{one.topic}: {one.state}{left}, hub {one.hub}" + (f" ({one.why})" if one.why else "")
