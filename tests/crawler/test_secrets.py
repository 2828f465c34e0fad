"""Secrets reach the servers that they are for, and nothing that a crawl writes, prints or shows to other processes."""

import base64
import gzip
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.crawler.proxies import proxy_server
from tests.crawler.small_server import NOT_FOUND, SmallServer, moved, page, small_server
from tests.effort import slow
from trapline.cli import run
from trapline.fetch.dns import hosts_text

Captured = pytest.CaptureFixture[str]
PASSWORD, BEARER, API_KEY = "pass-4f1d9c", "bearer-77aa01", "key-9c2e55"
COOKIE, SESSION, PROXY_PASSWORD = "cookie-31f0ab", "session-e05d72", "proxy-6b8c10"
BASIC = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
PROXY_BASIC = base64.b64encode(f"bob:{PROXY_PASSWORD}".encode()).decode()
SECRETS = (PASSWORD, BEARER, API_KEY, COOKIE, SESSION, PROXY_PASSWORD, BASIC, PROXY_BASIC)
FAST = ("--allow-private", "--delay", "0", "--backoff", "0")


class Site:
    """Servers of a.test and b.test, and the command lines that were visible while they answered."""

    def __init__(self) -> None:
        self.server: SmallServer
        self.command_lines: set[bytes] = set()

    def answers(self, host: str, target: str) -> bytes:
        self.command_lines |= set(_command_lines())
        other = f"http://b.test:{self.server.port}/"
        if target in ("/robots.txt", "/sitemap.xml"):
            return NOT_FOUND
        if host == "b.test":
            return page()
        if target == "/moved":
            return moved(other)
        return page("/a", "/moved", other, fields=f"Set-Cookie: sid={SESSION}; Path=/\r\n")

    def requests(self, host: str, target: str) -> list[str]:
        return [one.head for one in self.server.log if (one.host, one.target) == (host, target)]


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()
    with small_server(found.answers, ("127.9.0.1",)) as found.server:
        yield found


def written(folder: Path, site: Site) -> list[str]:
    """Write the files with secrets and addresses, and return the options that name them."""
    folder.mkdir(exist_ok=True)
    (folder / "hosts").write_text(hosts_text({"a.test": ["127.9.0.1"], "b.test": ["127.9.0.1"]}))
    a, b = (f"http://{name}.test:{site.server.port}" for name in "ab")
    (folder / "secrets.toml").write_text(
        f'[site."{a}"]\nuser = "ann"\npassword = {{ env = "TEST_PASSWORD" }}\nheaders = {{ X-Api-Key = "{API_KEY}" }}\n'
        f'[site."{b}"]\nbearer = "{BEARER}"\n[proxy]\nuser = "bob"\npassword = "{PROXY_PASSWORD}"\n'
    )
    (folder / "cookies.txt").write_text(f"# Netscape HTTP Cookie File\na.test\tFALSE\t/\tFALSE\t0\tlogin\t{COOKIE}\n")
    for name in ("secrets.toml", "cookies.txt"):
        (folder / name).chmod(0o600)
    given = {"hosts": "hosts", "credentials": "secrets.toml", "cookies": "cookies.txt"}
    return [word for option, name in given.items() for word in (f"--{option}", str(folder / name))]


def _command_lines() -> Iterator[bytes]:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield file.read_bytes()
        except OSError:  # the process has ended
            continue


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield everything in a folder: files as they are, archives decompressed, and each value of each database."""
    # All files are read first, because SQLite removes its log when it closes the database.
    for file, data in [(path, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()]:
        yield str(file), data
        if file.suffix == ".gz":
            yield f"{file} decompressed", gzip.decompress(data)
        if data.startswith(b"SQLite format 3"):
            with closing(sqlite3.connect(file)) as database:
                yield f"{file} in SQL", b"\n".join(_values(database))


def _values(database: sqlite3.Connection) -> Iterator[bytes]:
    for (table,) in database.execute("select name from sqlite_schema where type = 'table'").fetchall():
        for row in database.execute(f'select * from "{table}"'):
            for value in row:
                data = value if isinstance(value, bytes) else str(value).encode()
                yield data
                for bits in (-15, 47):
                    try:
                        yield zlib.decompressobj(bits).decompress(data)
                    except zlib.error:
                        continue


def leaks(places: Iterator[tuple[str, bytes]]) -> list[tuple[str, str]]:
    return [(where, secret) for where, data in places for secret in SECRETS if secret.encode() in data]


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_secrets_reach_their_servers_and_nothing_else(
    site: Site, kind: str, tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", PASSWORD)
    out = tmp_path / "out"
    with proxy_server(kind, ("bob", PROXY_PASSWORD)) as proxy:
        options = [*written(tmp_path / "given", site), *FAST, "--accept-cookies", "--proxy", proxy.url, "--plain"]
        more = ["--header", "X-Plain: yes", "--scope", "any", "--sitemaps", "--metadata"]
        assert run(["crawl", f"http://a.test:{site.server.port}/", *options, *more, "-o", str(out)]) == 0
        # The proxy connects to the address that the guard has checked, and to nothing else.
        assert set(proxy.log) == {f"127.9.0.1:{site.server.port}"}
    _check_headers(site)
    for command in (["report"], ["status"], ["config"], ["export"], ["explain", f"http://a.test:{site.server.port}/a"]):
        assert run([command[0], str(out), *command[1:]]) == 0
    said = capfd.readouterr()
    found = [*contents(out), ("stdout", said.out.encode()), ("stderr", said.err.encode())]
    found += [("process list", line) for line in site.command_lines]
    assert b"X-Plain: yes" in dict(found)[next(where for where, _ in found if where.endswith("decompressed"))]
    assert len(said.out) > 100 and any(b"trapline.crawler.store" in line for line in site.command_lines)
    assert leaks(iter(found)) == []


def _check_headers(site: Site) -> None:
    first, later = site.requests("a.test", "/")[0], site.requests("a.test", "/a")[0]
    for head in (*site.requests("a.test", "/robots.txt"), first, later):
        assert f"\r\nAuthorization: Basic {BASIC}\r\n" in head and f"\r\nX-Api-Key: {API_KEY}\r\n" in head
        assert f"login={COOKIE}" in head and "\r\nX-Plain: yes\r\n" in head
    assert SESSION not in first and f"sid={SESSION}" in later
    (redirected,) = site.requests("b.test", "/")
    assert f"\r\nAuthorization: Bearer {BEARER}\r\n" in redirected and "\r\nX-Plain: yes\r\n" in redirected
    assert not any(secret in redirected for secret in SECRETS if secret != BEARER)


def test_the_search_for_secrets_finds_them(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(gzip.compress(b"x") + gzip.compress(f"Cookie: {COOKIE}".encode()))
    with closing(sqlite3.connect(tmp_path / "crawl.db")) as database, database:
        database.execute("create table t (a, b)")
        database.execute("insert into t values (?, ?)", (f"x{BEARER}", zlib.compress(API_KEY.encode())))
    assert {secret for _, secret in leaks(contents(tmp_path))} == {COOKIE, BEARER, API_KEY}


@slow
def test_several_processes_keep_secrets_too(
    site: Site, tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", PASSWORD)
    out = tmp_path / "out"
    options = [*written(tmp_path / "given", site), *FAST, "--ip-delay", "0", "--accept-cookies", "--processes", "2"]
    header = ["--header", "X-Plain: yes", "--scope", "any"]
    assert run(["crawl", f"http://a.test:{site.server.port}/", *options, *header, "-o", str(out)]) == 0
    _check_headers(site)
    said = capfd.readouterr()
    found = [*contents(out), ("stdout", said.out.encode()), ("stderr", said.err.encode())]
    assert leaks(iter([*found, *(("process list", line) for line in site.command_lines)])) == []


def test_a_resumed_crawl_reads_its_secrets_again(
    site: Site, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", PASSWORD)
    out, given = tmp_path / "out", tmp_path / "given"
    words = [f"http://a.test:{site.server.port}/", *written(given, site), *FAST, "--no-sitemaps", "--quiet"]
    assert run(["crawl", *words, "--max-pages", "1", "-o", str(out)]) == 0
    (given / "secrets.toml").rename(given / "moved.toml")
    resumed = ["crawl", "--resume", str(out), "--max-pages", "2", "--quiet"]
    assert run(resumed) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "--credentials" in said and "No such file" in said and "restore the file" in said
    assert run([*resumed, "--credentials", str(given / "moved.toml")]) == 0
    assert f"Basic {BASIC}" in site.requests("a.test", "/a")[0]
