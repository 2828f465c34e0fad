"""Several processes know as much about each other's sites as one process: where a robots.txt redirects to, and URLs that are named
later."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.crawler.small_server import NOT_FOUND, Answers, SmallServer, moved, name_server, page, small_server, text
from tests.effort import slow
from tests.fetch.name_server import Name
from tests.parallel.processes_world import crawl, fetched, rows
from trapline.fetch.dns import hosts_text
from trapline.parallel.folder.manifest import read
from trapline.parallel.partition import Partitioning

PARTS = 3


def addresses_of_others() -> list[str]:
    """Return one address of each partition."""
    owner = Partitioning("address", PARTS).owner_of
    found = {owner(b"", b"", f"127.9.1.{last}".encode()): f"127.9.1.{last}" for last in range(1, 60)}
    return [found[part] for part in range(PARTS)]


ADDRESS = dict(zip(("a.test", "b.test", "c.test"), addresses_of_others(), strict=True))


def arguments_for(port: int, hosts: Path, *seeds: str) -> list[object]:
    hosts.write_text(hosts_text({name: [address] for name, address in ADDRESS.items()}))
    urls = [f"http://{seed.replace('/', f':{port}/', 1)}" for seed in seeds]
    return [*urls, "--allow-private", "--delay", 0.05, "--pause", 0, "--backoff", 0]


def paths(folder: Path) -> Counter[str]:
    """Return host and path of the fetched pages."""
    return Counter(_path(url) for url in fetched(folder).elements())


def _path(url: str) -> str:
    host, _, rest = url.partition("//")[2].partition(":")
    return host + "/" + rest.partition("/")[2]


# ---- a robots.txt on a site of another partition


def robots_away(server: Sequence[SmallServer]) -> Answers:
    """The robots.txt of a redirects to b. That of b redirects to c, under another name. That of c is in its place."""

    def answers(host: str, target: str) -> bytes:
        port = server[0].port
        found = {
            ("a.test", "/robots.txt"): moved(f"http://b.test:{port}/robots.txt"),
            ("b.test", "/robots.txt"): moved(f"http://c.test:{port}/for-b.txt"),
            ("c.test", "/for-b.txt"): text("User-agent: *\nDisallow: /no\nAllow: /no*t\n"),
            ("c.test", "/robots.txt"): text("User-agent: *\nDisallow: /yes\n"),
            ("a.test", "/"): page("/yes", "/no", "/not"),
        }
        return found.get((host, target), page() if target in ("/yes", "/no", "/not") else NOT_FOUND)

    return answers


@slow
@pytest.mark.parametrize("by", ["hosts", "name server"])
def test_a_robots_txt_that_redirects_to_a_site_of_another_partition_is_used(tmp_path: Path, by: str) -> None:
    servers: list[SmallServer] = []
    with (
        small_server(lambda *requested: robots_away(servers)(*requested), list(ADDRESS.values())) as server,
        name_server({name: Name((address,)) for name, address in ADDRESS.items()}) as where,
    ):
        servers.append(server)
        args = [*arguments_for(server.port, tmp_path / "hosts", "a.test/"), "--no-sitemaps"]
        args += ["--nameserver", where] if by == "name server" else ["--hosts", tmp_path / "hosts"]
        assert crawl(*args, "-o", tmp_path / "alone") == 0
        requested_alone = {(one.host, one.target) for one in server.log}
        server.log.clear()
        assert crawl(*args, "-o", tmp_path / "c", "--processes", PARTS) == 0
        requested = Counter((one.host, one.target) for one in server.log)
    assert paths(tmp_path / "c")["a.test/yes"] == paths(tmp_path / "c")["a.test/not"] == 1
    assert paths(tmp_path / "c")["a.test/no"] == 0
    assert set(requested) == requested_alone
    assert rows(tmp_path / "c", "select * from abandoned_site") == []
    for part, name in zip(read(tmp_path / "c").parts, ADDRESS, strict=True):
        assert {address for (address,) in rows(part, "select distinct address from fetch where address != ''")} <= {
            ADDRESS[name]
        }


# ---- URLs that are named later


@slow
def test_urls_that_are_named_later_reach_their_owner_once(tmp_path: Path) -> None:
    """A refetch of the home page of a finds a link to a new page of b. The robots.txt of a names sitemaps on b, and on c, which is not
    part of the crawl."""
    times: Counter[str] = Counter()
    servers: list[SmallServer] = []

    def answers(host: str, target: str) -> bytes:
        port = servers[0].port
        times[host + target] += 1
        if host + target == "a.test/":
            later = [f"http://b.test:{port}/later"] if times["a.test/"] > 1 else []
            return page(f"http://b.test:{port}/", *later)
        if host + target == "a.test/robots.txt":
            return text("".join(f"Sitemap: http://{name}.test:{port}/map.xml\n" for name in "bc"))
        if target == "/map.xml":
            return text(f"<urlset><url><loc>http://{host}:{port}/listed</loc></url></urlset>")
        return page() if target in ("/", "/later", "/listed") else NOT_FOUND

    with small_server(answers, list(ADDRESS.values())) as server:
        servers.append(server)
        args = [*arguments_for(server.port, tmp_path / "hosts", "a.test/", "b.test/"), "--hosts", tmp_path / "hosts"]
        args += ["--continuous", "--max-time", 6]
        assert crawl(*args, "-o", tmp_path / "c", "--processes", PARTS) == 0
    parts = read(tmp_path / "c").parts
    assert paths(parts[1])["b.test/later"] > 0 and paths(parts[1])["b.test/listed"] > 0
    assert not paths(parts[2]) and times["c.test/map.xml"] == 0
    known = [url for part in parts for (url,) in rows(part, "select url from page")]
    assert len(known) == len(set(known))
    made = sum(made for part in parts for (made,) in rows(part, "select made from partition"))
    assert made <= 6


# ---- requisites on a site of another partition


def album(server: Sequence[SmallServer]) -> Answers:
    """Pages of a need files of b and c; the stylesheet of b needs one of a."""

    def answers(host: str, target: str) -> bytes:
        port = server[0].port
        styled = f"<link rel=stylesheet href=http://b.test:{port}/s.css><img src=http://c.test:{port}/i.png>"
        found = {
            ("a.test", "/"): _html(f"{styled}{''.join(f'<a href=/{n}>' for n in range(9))}"),
            ("b.test", "/s.css"): text(f"a{{b:url(http://a.test:{port}/font)}}"),
            ("c.test", "/i.png"): text("x"),
            ("a.test", "/font"): text("x"),
        }
        is_page = host == "a.test" and target[1:].isdigit()
        return found.get((host, target)) or (_html(f"{styled}<img src={target}.png>") if is_page else NOT_FOUND)

    return answers


def _html(body: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@slow
@pytest.mark.parametrize("limit", [(), ("--max-pages", 4)])
def test_requisites_on_sites_of_other_partitions_are_fetched_once(tmp_path: Path, limit: tuple[object, ...]) -> None:
    servers: list[SmallServer] = []
    with small_server(lambda *requested: album(servers)(*requested), list(ADDRESS.values())) as server:
        servers.append(server)
        args = [*arguments_for(server.port, tmp_path / "hosts", "a.test/"), "--hosts", tmp_path / "hosts", *limit]
        folder = tmp_path / "parts"
        assert crawl(*args, "--requisites", "--no-sitemaps", "--processes", PARTS, "-o", folder) == 0
        requested = Counter((one.host, one.target) for one in server.log if one.target != "/robots.txt")
    files = {("b.test", "/s.css"), ("c.test", "/i.png"), ("a.test", "/font")}
    assert max(requested.values()) == 1 and files <= requested.keys()
    pages = {target for host, target in requested if host == "a.test" and target[1:].isdigit()}
    assert len(pages) == (3 if limit else 9) and sum(fetched(folder).values()) == len(pages) + 1
    assert {f"{page}.png" for page in pages} <= {target for _, target in requested}
    states = dict(rows(folder, "select state, count(*) from requisite group by state"))
    assert states == {"fetched": 3, "missing": len(pages)}
