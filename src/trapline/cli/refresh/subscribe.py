"""`trapline refresh subscribe`: subscribe to a topic with its WebSub hub. This command finds the hub; a running endpoint talks to it."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.options.sections import refuse
from trapline.cli.options.values import seconds
from trapline.cli.refresh.serve import sites_of
from trapline.errors import ConfigError
from trapline.terminal import say
from trapline.units import duration

if TYPE_CHECKING:
    from trapline.signals.small_fetch import SmallFetch
    from trapline.signals.websub.protocol import Topic
    from trapline.signals.websub.subscriptions import Subscription, Subscriptions

_TOPIC_BYTES = 1024 * 1024
_LOOK_S = 0.2
_FETCHING = ("allow_private", "insecure", "hosts_file", "wait_s")  # options that only a new subscription uses
_FILE = click.Path(path_type=Path)
_HOSTS = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("folder", metavar="DIR", type=_FILE)
@click.argument("url", required=False)
@click.option("--leave", is_flag=True, help="End the subscription.")
@click.option(
    "--allow-private", is_flag=True, help="Also connect to pages, feeds and hubs on loopback and private addresses."
)
@click.option("--insecure", is_flag=True, help="Accept any TLS certificate.")
@click.option(
    "--hosts",
    "hosts_file",
    type=_HOSTS,
    metavar="FILE",
    help="File of addresses and host names, in the format of /etc/hosts.",
)
@click.option("--wait", "wait_s", type=seconds(), default=15.0, help="Time to wait for the hub's answer. [15 s]")
def subscribe(
    folder: Path,
    url: str | None,
    leave: bool,
    allow_private: bool,
    insecure: bool,
    hosts_file: Path | None,
    wait_s: float,
) -> None:
    """Subscribe to changes of the page or feed at URL, at its WebSub hub. Without URL, list the subscriptions.

    The Link headers, the HTML head or the feed at URL must name the hub. First start `trapline refresh serve DIR --public-url ...`,
    which sends the request to the hub. A TIME is in seconds or has a unit: 2min.
    """
    from trapline.signals.websub.subscriptions import Subscriptions

    if url is None:
        refuse(("leave", *_FETCHING), "has no effect without a URL; also give the URL of a page or feed")
    if leave:
        refuse(_FETCHING, "has no effect with --leave, which fetches nothing and does not wait; omit it")
    sites_of(folder)  # raises ConfigError if the folder does not hold a crawl
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
        raise ConfigError(f"{url}: not an http or https URL; give the URL of a page or feed")
    return found


def _place(folder: Path, url: str, allow_private: bool, insecure: bool, hosts_file: Path | None) -> "Topic":
    """Return the topic and its hub. If the page names another URL as its topic, that URL is fetched too and must name itself."""
    from trapline.fetch.address import Guard
    from trapline.fetch.dns import Resolver, read_hosts
    from trapline.fetch.http.connection import tls_context
    from trapline.signals.endpoint.known_sites import SitesKnown, authority_of
    from trapline.signals.small_fetch import SmallFetch

    async def both() -> "Topic":
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
            f"{place.topic}: the crawl in {folder} does not know this site, and could not use its signals; crawl it first"
        )
    if not place.hub.startswith("https://") and not allow_private:
        raise ConfigError(f"{place.topic}: its hub {place.hub} does not use https; give --allow-private to accept it")
    return place


async def _named_by(fetch: "SmallFetch", url: str) -> "Topic":
    from trapline.signals.websub.protocol import discovered

    answer = await fetch.get(url, _TOPIC_BYTES)
    if answer.status != 200:
        raise ConfigError(f"{url}: cannot be fetched: {_why(answer.failure) or f'the server answered {answer.status}'}")
    place = discovered(answer.url, answer.headers, answer.body)
    if place is None:
        raise ConfigError(
            f"{url}: names no hub, neither in Link headers nor in its content; give a page or feed that does"
        )
    return place


def _why(kind: str) -> str:
    """Return the text for a kind of failure."""
    from trapline.fetch.failure import ADDRESS, DNS
    from trapline.report.live_record import KINDS

    private = "its address is private or loopback; give --allow-private to allow that"
    return {**KINDS, DNS: "its host name has no address", ADDRESS: private}.get(kind, kind)


async def _confirmed(fetch: "SmallFetch", place: "Topic") -> "Topic":
    confirmed = await _named_by(fetch, place.topic)
    if confirmed.topic != place.topic:
        raise ConfigError(f"{place.topic}: this page names {confirmed.topic} as its topic; subscribe to that URL")
    return confirmed


def _waited(subscriptions: "Subscriptions", topic: str, wait_s: float) -> "Subscription":
    """Return the subscription once the hub has answered, or when the time is over."""
    until = time.monotonic() + wait_s
    while True:
        subscription = subscriptions.of_topic(topic)
        assert subscription is not None
        if subscription.state in ("active", "denied") or time.monotonic() >= until:
            return subscription
        time.sleep(_LOOK_S)


def _report(subscription: "Subscription", folder: Path) -> None:
    if subscription.state == "denied":
        raise ConfigError(f"{subscription.topic}: the hub {subscription.hub} refuses: {subscription.why}")
    if subscription.state == "wanted":
        say(
            f"{subscription.topic}: the hub has not been asked yet; to ask it, run: trapline refresh serve {folder} --public-url URL"
        )
    else:
        say(_row(subscription))


def _leave(subscriptions: "Subscriptions", topic: str) -> None:
    if not subscriptions.leave(topic, time.time()):
        raise ConfigError(f"{topic}: no such subscription; omit the URL and --leave to list all subscriptions")
    say(f"{topic}: `trapline refresh serve` will tell the hub to end the subscription")


def _list(subscriptions: "Subscriptions", folder: Path) -> None:
    found = list(subscriptions.all())
    for subscription in found:
        say(_row(subscription))
    if not found:
        say(f"no subscriptions yet; to subscribe: trapline refresh subscribe {folder} URL")


def _row(subscription: "Subscription") -> str:
    left = f" for {duration(subscription.expires - time.time())}" if subscription.state == "active" else ""
    why = f" ({subscription.why})" if subscription.why else ""
    return f"{subscription.topic}: {subscription.state}{left}, hub {subscription.hub}{why}"
