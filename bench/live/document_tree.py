"""Compares the pages that Trapline and `wget -r` fetch from real documents: python bench/live/document_tree.py

nginx serves Debian's python3-doc and debian-reference-en: the Python manuals under one name, the reference under two names on
another address. Both crawlers start at the three home pages and stay on these names. Both obey robots.txt, which forbids a part
of the manuals. Both follow the links of a, area, frame, iframe and meta refresh, but fetch no images or styles. The requests
come from nginx's log, not from the crawlers' own reports. Differences are printed, grouped by the status of the answer and by
site.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import nginx
from contestants import trapline
from ending import end_in_order

_SECONDS_AT_MOST = 600
_CLOSED = "/whatsnew/"
# The tags whose links `wget` follows. By default it also follows those of link, img, script and others.
_TAGS = "a,area,frame,iframe,meta"


class Tree(NamedTuple):
    package: str
    folder: Path
    address: str
    names: list[str]


TREES = [
    Tree("python3-doc", Path("/usr/share/doc/python3-doc/html"), "127.31.0.1", ["manuals.test"]),
    Tree("debian-reference-en", Path("/usr/share/debian-reference"), "127.31.0.2", ["reference.test", "guide.test"]),
]


def missing() -> str | None:
    """Return the command that installs the missing programs; None if nothing is missing."""
    wanted = [tree.package for tree in TREES if not tree.folder.is_dir()]
    wanted += [] if shutil.which("wget") else ["wget"]
    return f"install what is missing with: sudo apt-get install {' '.join(wanted)}" if wanted else None


def home_pages(port: int) -> list[str]:
    return [f"http://{name}:{port}/" for tree in TREES for name in tree.names]


def by_wget(port: int, scratch: Path) -> list[str]:
    """Return the command of wget. nginx is also its proxy, because wget cannot use a hosts file."""
    names = [name for tree in TREES for name in tree.names]
    rules = ["--recursive", "--level=inf", "--span-hosts", f"--domains={','.join(names)}", f"--follow-tags={_TAGS}"]
    proxy = ["-e", "use_proxy=on", "-e", f"http_proxy=http://{TREES[0].address}:{port}/"]
    quietly = ["--quiet", "--delete-after", "--tries=1", f"--directory-prefix={scratch / 'wget'}"]
    return ["wget", *rules, *proxy, *quietly, *home_pages(port)]


def by_trapline(port: int, scratch: Path) -> list[str]:
    hosts = scratch / "hosts"
    hosts.write_text("".join(f"{tree.address} {' '.join(tree.names)}\n" for tree in TREES))
    rules = ["--scope", "host", "--delay", "0", "--allow-private", "--hosts", str(hosts)]
    return trapline("crawl", *home_pages(port), *rules, "--quiet", "-o", str(scratch / "crawl"))


def requested_urls(command: list[str], port: int, scratch: Path) -> dict[str, str]:
    """Run a crawler; return the URLs that it requested, each with the status of its last answer."""
    servers = scratch / "nginx"
    # As wget's proxy, the first address answers for the other names too.
    listeners = [
        nginx.Listener(sorted({TREES[0].address, tree.address}), port, str(_linked(tree, scratch)), tree.names)
        for tree in TREES
    ]
    environment = os.environ | {"no_proxy": ""}
    with nginx.serving(listeners, servers, log=True):
        done = subprocess.run(command, env=environment, timeout=_SECONDS_AT_MOST, capture_output=True, text=True)
    if not (servers / "access.log").read_text():
        sys.exit(f"{command[0]} sent no request; its messages: {done.stderr.strip()}")
    rows = [row.split(" ")[:2] for row in (servers / "access.log").read_text().splitlines()]
    return {url: status for status, url in rows}


def _linked(tree: Tree, scratch: Path) -> Path:
    """Return a folder of links to the tree, with a robots.txt; the tree itself is not changed."""
    root = scratch / tree.names[0]
    if not root.exists():
        root.mkdir(parents=True)
        for child in tree.folder.iterdir():
            (root / child.name).symlink_to(child.resolve())
        (root / "robots.txt").write_text(f"User-agent: *\nDisallow: {_CLOSED}\n")
    return root


def differences(wget: dict[str, str], ours: dict[str, str]) -> dict[tuple[str, str, str], list[str]]:
    """Return the URLs that only one crawler requested, by crawler, status of the answer, and site."""
    grouped: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for who, mine, other in (("wget", wget, ours), ("Trapline", ours, wget)):
        for url in sorted(mine.keys() - other.keys()):
            grouped[who, mine[url], url.split("/")[2]].append(url)
    return grouped


def counted(found: dict[str, str]) -> str:
    there, closed = sum(status == "200" for status in found.values()), sum(_CLOSED in url for url in found)
    return f"{len(found):,} URLs, of which {there:,} exist and {closed} are forbidden by robots.txt"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--all", action="store_true", help="print every URL, instead of ten per group")
    args = options.parse_args()
    end_in_order()
    if wanted := missing():
        sys.exit(wanted)
    [port], found = nginx.free_ports([tree.address for tree in TREES], 1), []
    with tempfile.TemporaryDirectory() as folder:
        for name, command in (("wget", by_wget), ("Trapline", by_trapline)):
            scratch = Path(folder) / name
            scratch.mkdir()
            found.append(requested_urls(command(port, scratch), port, scratch))
            print(f"{name}: {counted(found[-1])}")
    print(f"both: {len(found[0].keys() & found[1].keys()):,}")
    for (who, status, site), urls in differences(*found).items():
        print(f"only {who}, {status}, {site}: {len(urls):,}")
        print("".join(f"    {url}\n" for url in (urls if args.all else urls[:10])), end="")


if __name__ == "__main__":
    main()
