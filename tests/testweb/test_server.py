"""The server over real sockets: what goes over the wire, in which order, and how connections end."""

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trustme

from tests.testweb.webs import SIZE, connect, numbered, one_answer, request, response_to, until_end
from trapline.errors import ConfigError
from trapline.testweb import (
    ATTACKS,
    FAULTS,
    Behaviour,
    Promise,
    RequestLog,
    Served,
    ServedWeb,
    build_web,
    check,
    render,
    serve,
)

PLAIN, LIMITED, UNANNOUNCED, OLD, SLOW, IDLE, FAULTY = range(7)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    shares = tuple((name, 1 / len(FAULTS)) for name in FAULTS)
    behaviours = [
        Behaviour(),
        Behaviour(requests_per_connection=3),
        Behaviour(requests_per_connection=2, announced=False),
        Behaviour(http10=True),
        Behaviour(latency_s=0.05, connection_s=0.05, bandwidth=100_000.0),
        Behaviour(keep_alive_s=0.0),
        Behaviour(faults=shares, retry_after_s=3),
    ]
    with serve(build_web(numbered(7, 200), behaviours)) as server:
        yield server


@pytest.fixture
def web(served: Served) -> ServedWeb:
    return served.web


def pages_of(web: ServedWeb, site: int) -> list[int]:
    return [page for page in range(web.pages) if web.site[page] == site]


def test_a_connection_serves_many_pages_in_the_order_of_the_requests(web: ServedWeb) -> None:
    with connect(web, PLAIN) as own:
        for page in (0, 5, 2, 5):
            own.sendall(request(web, page))
            head, body, rest = one_answer(own)
            assert head.startswith(b"HTTP/1.1 200 OK\r\n") and b"onnection" not in head
            assert (body, rest) == (render(web, page), b"")


@pytest.mark.parametrize("site", [PLAIN, SLOW])
def test_pipelined_requests_are_answered_in_order(web: ServedWeb, site: int) -> None:
    pages = pages_of(web, site)[:6]
    with connect(web, site) as own:
        own.sendall(b"".join(request(web, page) for page in pages))
        rest = b""
        for page in pages:
            _, body, rest = one_answer(own, rest)
            assert body == render(web, page)
        assert rest == b""


def test_a_request_may_come_byte_by_byte(web: ServedWeb) -> None:
    with connect(web, PLAIN) as own:
        for byte in request(web, 3):
            own.sendall(bytes([byte]))
        assert one_answer(own)[1] == render(web, 3)


def test_the_limit_of_requests_is_announced_and_applied(web: ServedWeb) -> None:
    pages = pages_of(web, LIMITED)[:5]
    with connect(web, LIMITED) as own:
        own.sendall(b"".join(request(web, page) for page in pages))
        everything = until_end(own)
    assert re.findall(rb"max=(\d+)", everything) == [b"2", b"1"]
    assert everything.count(b"HTTP/1.1 200 OK") == 3
    assert everything.count(b"Connection: close") == 1


def test_a_limit_may_be_unannounced(web: ServedWeb) -> None:
    pages = pages_of(web, UNANNOUNCED)[:3]
    with connect(web, UNANNOUNCED) as own:
        own.sendall(b"".join(request(web, page) for page in pages))
        everything = until_end(own)
    assert everything.count(b"HTTP/1.1 200 OK") == 2 and b"Connection" not in everything


def test_an_http_1_0_server_closes_after_each_answer(web: ServedWeb) -> None:
    page = pages_of(web, OLD)[1]
    everything = response_to(web, page)
    assert everything.startswith(b"HTTP/1.0 200 OK\r\n") and everything.endswith(render(web, page))


def test_an_http_1_0_connection_stays_open_only_on_request(web: ServedWeb) -> None:
    assert response_to(web, 1, version="1.0").endswith(render(web, 1))  # to the end of the connection
    with connect(web, PLAIN) as own:
        for _ in range(2):
            own.sendall(request(web, 1, "Connection: keep-alive", version="1.0"))
            head, body, _ = one_answer(own)
            assert b"Connection: keep-alive" in head and body == render(web, 1)


def test_a_connection_is_closed_if_the_client_asks_for_it(web: ServedWeb) -> None:
    assert b"Connection: close\r\n" in response_to(web, 1, "Connection: close")


def test_an_idle_connection_is_closed(web: ServedWeb) -> None:
    with connect(web, IDLE) as own:
        own.sendall(request(web, pages_of(web, IDLE)[0]))
        assert until_end(own).count(b"HTTP/1.1 200 OK") == 1


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: elsewhere.org\r\n\r\n", b"421"),
        (b"GET / HTTP/1.1\r\nHost: site-1.test\r\n\r\n", b"421"),  # at another address
        (b"nonsense\r\nHost: site-0.test\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: site-0.test\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"GET /" + b"a" * 70_000, b"431"),
    ],
)
def test_an_invalid_request_is_refused_and_ends_the_connection(web: ServedWeb, sent: bytes, status: bytes) -> None:
    with connect(web, PLAIN) as own:
        own.sendall(sent)
        assert until_end(own).split(b" ", 2)[1] == status


def page_with(web: ServedWeb, fault: str) -> int:
    return next(page for page in pages_of(web, FAULTY) if web.fault(page) == fault)


@pytest.mark.parametrize("fault", ["empty", "reset", "short-body", "bad-chunks", "garbage", "no-length", "long-body"])
def test_faults_that_end_by_themselves(web: ServedWeb, fault: str) -> None:
    page = page_with(web, fault)
    everything, body = response_to(web, page, "Connection: close"), render(web, page)
    assert {
        "empty": everything == b"",
        "reset": everything.endswith(b"(reset)") and 500 < len(everything) < SIZE,
        "short-body": everything.endswith(body) and f"Length: {SIZE + 1_000}".encode() in everything,
        "bad-chunks": b"\r\nno number\r\n" in everything,
        "garbage": not everything.startswith(b"HTTP"),
        "no-length": everything.endswith(body) and b"Length" not in everything,
        "long-body": everything.endswith(body) and f"Length: {SIZE // 2}".encode() in everything,
    }[fault]


@pytest.mark.parametrize("fault", ["silent", "dribble", "endless-body", "endless-headers"])
def test_faults_that_do_not_end(served: Served, fault: str) -> None:
    web, page = served.web, page_with(served.web, fault)
    with connect(web, FAULTY) as own:
        own.sendall(request(web, page))
        received = b""
        if fault == "silent":
            own.settimeout(0.3)
            with pytest.raises(TimeoutError):
                own.recv(1)
        while len(received) < {"silent": 0, "dribble": 1}.get(fault, 500_000):
            received += own.recv(65_536)
    assert {
        "silent": received == b"",
        "dribble": received == b"H",
        "endless-body": len(received) >= 500_000 and received.count(b"HTTP/1.1") == 1,
        "endless-headers": len(received) >= 500_000 and b"\r\n\r\n" not in received,
    }[fault]
    with connect(web, FAULTY) as own:  # other requests are served meanwhile
        own.sendall(request(web, page_with(web, "chunked")))
        assert own.recv(8) == b"HTTP/1.1"


def test_a_page_that_is_unavailable_once_is_served_later(web: ServedWeb) -> None:
    page = page_with(web, "unavailable-once")
    with connect(web, FAULTY) as own:
        own.sendall(request(web, page) * 2)
        head, _, rest = one_answer(own)
        assert head.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 3" in head
        assert one_answer(own, rest)[1] == render(web, page)


def test_every_fault_is_tested() -> None:
    tried = {"empty", "reset", "short-body", "bad-chunks", "garbage", "long-body"}
    tried |= {"silent", "dribble", "endless-body", "endless-headers"}
    assert set(ATTACKS) - tried == {"broken-gzip", "gzip-bomb"}  # only the bytes of these are unusual


def test_several_sites_on_one_address_and_several_simultaneous_servers() -> None:
    web = build_web(numbered(4), sites_per_address=4)
    with serve(web) as one, serve(web) as other:
        assert one.port != other.port and len(set(one.hosts.values())) == 1
        for site in range(4):
            assert response_to(other.web, other.web.home[site], "Connection: close").endswith(
                render(other.web, web.home[site])
            )
        with pytest.raises(ConfigError, match=f":{one.port}"), serve(web, port=one.port):
            pass
    with pytest.raises(ConnectionRefusedError):
        connect(one.web, 0)


def test_it_listens_on_loopback_only(served: Served) -> None:
    with open("/proc/net/tcp") as table:
        listening = [row.split()[1] for row in table if row.split()[3] == "0A"]
    ours = [where for where in listening if int(where.split(":")[1], 16) == served.port]
    assert len(ours) == len(served.web.addresses)
    assert all(where[6:8] == "7F" for where in ours)  # 127, with the last byte first


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = (
        "import sys; from tests.testweb.webs import numbered; from trapline.testweb import build_web, serve\n"
        "with serve(build_web(numbered())) as server:\n"
        "    print(server.port, flush=True); sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},
    )
    assert parent.stdin and parent.stdout
    port = int(parent.stdout.readline())
    socket.create_connection(("127.1.0.1", port), timeout=10).close()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert parent.stdout.read() == b""
    parent.stdin.close()
    parent.stdout.close()
    with pytest.raises(ConnectionRefusedError):
        while True:  # until the server has noticed
            with suppress(ConnectionResetError):  # the server was about to accept it
                socket.create_connection(("127.1.0.1", port), timeout=10).close()


def test_https_with_a_given_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.issue_cert("site-0.test").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "cert.pem"))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with serve(build_web(numbered()), tls=(tmp_path / "cert.pem", None)) as server:
        web = server.web
        assert web.seed_urls[0] == f"https://site-0.test:{server.port}/"
        with context.wrap_socket(connect(web, 0), server_hostname="site-0.test") as own:
            for page in (0, 1):
                own.sendall(request(web, page))
                assert one_answer(own)[1] == render(web, page)
    with pytest.raises(ConfigError, match=re.escape("nothing.pem")), serve(web, tls=(tmp_path / "nothing.pem", None)):
        pass


def test_a_certificate_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path) -> None:
    own, other = (trustme.CA().issue_cert("site-0.test") for _ in range(2))
    files = {
        "cert.pem": own.cert_chain_pems[0].bytes(),
        "other.key": other.private_key_pem.bytes(),
        "text.pem": b"text",
        "locked.key": b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n",
        "damaged.pem": b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for certificate, key, said in (
        ("text.pem", None, "--tls {}/text.pem: has no certificate"),
        ("cert.pem", None, "--tls {}/cert.pem: has no private key in PEM format; give the file of the key: --tls-key"),
        ("cert.pem", "text.pem", "--tls-key {}/text.pem: has no private key"),
        ("cert.pem", "locked.key", "--tls-key {}/locked.key: the key is encrypted; decrypt it"),
        ("cert.pem", "other.key", "--tls-key {}/other.key: is not the key of the certificate"),
        ("damaged.pem", "other.key", "--tls {}/damaged.pem with the key in {}/other.key: the files are damaged"),
    ):
        tls = (tmp_path / certificate, tmp_path / key if key else None)
        with pytest.raises(ConfigError, match=re.escape(said.replace("{}", str(tmp_path)))):
            serve(build_web(numbered()), tls=tls).__enter__()


def test_a_port_in_use_is_refused_with_what_to_do(served: Served) -> None:
    with pytest.raises(ConfigError, match=rf"127.1.0.1:{served.port}: .*; give another port, or --port 0"):
        serve(build_web(numbered()), served.port).__enter__()


def test_the_checker_accepts_a_polite_client_without_tolerance_and_not_a_hasty_one(served: Served) -> None:
    delay_s, web, before = 0.005, served.web, len(served.log())
    for page in range(30):
        assert response_to(web, page % 200, "Connection: close")
        time.sleep(delay_s)
    polite = since(served.log(), before)
    assert check(polite, Promise(delay_s)).violations == 0
    assert len(check(polite, Promise(delay_s=1_000.0)).early) == 29


def since(log: RequestLog, row: int) -> RequestLog:
    """The rows from this one on."""
    size = len(log.columns.rows) // len(log)
    return RequestLog(log.web, log.columns._replace(rows=log.columns.rows[row * size :], other={}))
