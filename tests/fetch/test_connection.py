"""One connection against real servers on loopback, well-behaved and misbehaving. The owner gets each event exactly once."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

import pytest
import trustme
import uvloop

from trapline.errors import InvariantError
from trapline.fetch.failure import CLOSED, CONNECT, PROTOCOL, STOPPED, TIMEOUT, TLS, TOO_LARGE
from trapline.fetch.http.connection import Connection, open_connection, tls_context
from trapline.fetch.http.http1 import Response, request, request_headers
from trapline.fetch.http.throttle import BandwidthLimit, Throttle
from trapline.fetch.limits import Limits

HEADERS = request_headers("example.com", {"User-Agent": "trapline-test"})
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Server = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


@dataclass
class Visit:
    """An owner that requests `paths`, `at_once` of them before the first answer, and records the events that it gets."""

    paths: list[str]
    at_once: int = 1
    stop_after: int = 99
    responses: list[Response] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    seconds: float = -1.0
    failure: str = "not lost yet"
    unanswered: int = -1
    closes: bool = True  # after the last answer

    def connected(self, connection: Connection, seconds: float) -> None:
        self.events.append("connected")
        self.seconds = seconds
        for _ in range(self.at_once):
            self._ask(connection)

    def received(self, connection: Connection, response: Response) -> None:
        self.events.append("received")
        self.responses.append(response)
        if len(self.responses) >= self.stop_after:
            connection.abort()
        elif self.paths and response.keep_alive:
            self._ask(connection)
        elif not self.paths and not connection.unanswered and self.closes:
            connection.close()

    def lost(self, connection: Connection, failure: str, unanswered: int) -> None:
        self.events.append("lost")
        self.failure, self.unanswered = failure, unanswered
        self.over.set()

    def _ask(self, connection: Connection) -> None:
        if self.paths:
            connection.send(request(self.paths.pop(0), HEADERS))

    @property
    def bodies(self) -> list[bytes]:
        return [response.body for response in self.responses]


async def run_visit(
    serve: Server,
    visit: Visit,
    limits: Limits | None = None,
    server_tls: ssl.SSLContext | None = None,
    client_tls: ssl.SSLContext | None = None,
    name: str = "example.com",
    throttle: Throttle | None = None,
) -> Connection:
    """Run a visit to a server to its end. Timeouts are checked all the time."""
    server = await asyncio.start_server(quiet(serve), "127.0.0.1", 0, ssl=server_tls)
    async with server:
        port = server.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        connection = open_connection(loop, "127.0.0.1", port, visit, limits or Limits(), client_tls, name, throttle)
        await until_over(connection, visit)
    for _ in range(3):
        await asyncio.sleep(0)
    connection.sweep(monotonic() + 1_000)
    assert visit.events.count("connected") <= 1
    assert visit.events.count("received") == len(visit.responses) == connection.responses_received
    assert visit.events.index("lost") == len(visit.events) - 1
    assert visit.unanswered == connection.requests_sent - connection.responses_received
    return connection


async def until_over(connection: Connection, visit: Visit) -> None:
    for _ in range(2_000):
        connection.sweep(monotonic())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(visit.over.wait(), 0.01)
            return
    raise AssertionError("the visit did not end")


def quiet(serve: Server) -> Server:
    async def serving(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            writer.close()
            await writer.wait_closed()

    return serving


async def next_path(reader: asyncio.StreamReader) -> bytes:
    """The path of the next request, or b"" if no request comes."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    return head.split(b" ", 2)[1]


def answering(*answers: bytes, ends: bool = True) -> Server:
    """A server that answers each request with the next of these byte strings, and then closes the connection or waits
    until the client closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            if not await next_path(reader):
                return
            writer.write(answer)
            await writer.drain()
        if not ends:
            await reader.read()

    return serve


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while path := await next_path(reader):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(path) + path)


async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a crash does: RST instead of FIN."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.fixture(params=sorted(LOOPS))
def run(request: pytest.FixtureRequest) -> Iterator[Callable[[Awaitable[Any]], Any]]:
    with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
        yield runner.run  # type: ignore[misc]


Run = Callable[[Awaitable[Any]], Any]


# Well-behaved servers


def test_requests_one_after_the_other(run: Run) -> None:
    visit = Visit(["/1", "/2", "/3"])
    connection = run(run_visit(echo, visit))
    assert (visit.bodies, visit.failure, visit.unanswered) == ([b"/1", b"/2", b"/3"], "", 0)
    assert visit.seconds > 0
    assert connection.address == "127.0.0.1"


def test_pipelined_requests(run: Run) -> None:
    visit = Visit([f"/{i}" for i in range(50)], at_once=20)
    run(run_visit(echo, visit))
    assert visit.bodies == [b"/%d" % i for i in range(50)]


def test_a_response_lasts_from_its_request_to_its_end_and_its_own_time_is_all_of_that_without_pipelining(
    run: Run,
) -> None:
    visit = Visit(["/1", "/2", "/3"])
    run(run_visit(echo, visit))
    assert all(0 < response.first_byte_s <= response.total_s == response.own_s for response in visit.responses)


class Timed(Visit):
    """A visit that records when it sent requests and got answers, and spends time on each answer."""

    def __init__(self, paths: list[str], at_once: int) -> None:
        super().__init__(paths, at_once)
        self.sent_at: list[tuple[float, float]] = []  # just before the request was sent, and just after
        self.reported_at: list[float] = []

    def received(self, connection: Connection, response: Response) -> None:
        self.reported_at.append(monotonic())
        sleep(0.001)
        super().received(connection, response)

    def _ask(self, connection: Connection) -> None:
        before = monotonic()
        super()._ask(connection)
        self.sent_at.append((before, monotonic()))


def test_pipelined_responses_last_from_request_to_end_and_their_own_times_add_up(run: Run) -> None:
    """However many responses arrive in one piece, and whatever is requested while that piece is read."""
    answered_at: list[float] = []

    async def together(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while requests := (await reader.read(10_000)).count(b"GET "):
            answered_at.extend([monotonic()] * requests)
            writer.write(ANSWER * requests)

    visit = Timed([f"/{i}" for i in range(12)], at_once=4)
    run(run_visit(together, visit))
    for response, next_path, answered, events in zip(
        visit.responses, visit.sent_at, answered_at, visit.reported_at, strict=False
    ):
        assert next_path[0] + response.total_s <= events and next_path[1] + response.total_s >= answered
        assert 0 < response.first_byte_s <= response.total_s
    own = [response.own_s for response in visit.responses]
    assert len(own) == 12 and min(own) > 0
    assert (
        answered_at[3] - visit.sent_at[0][1] <= sum(own[:4]) <= sum(own) <= visit.reported_at[-1] - visit.sent_at[0][0]
    )


@pytest.mark.parametrize("ahead", [b"", ANSWER])
def test_a_body_that_begins_with_empty_lines_is_complete_however_it_is_cut(run: Run, ahead: bytes) -> None:
    head, body = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", b"\r\n\n\r\nx"

    async def in_pieces(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_path(reader)
        for piece in (ahead + head + body[:1], body[1:3], body[3:]):
            writer.write(piece)
            await asyncio.sleep(0.002)

    visit = Visit(["/1", "/2"] if ahead else ["/2"], at_once=2)
    run(run_visit(in_pieces, visit))
    assert visit.bodies[-1] == body and visit.failure == ""


def test_large_and_slow_answers(run: Run) -> None:
    body = bytes(range(256)) * 8_000

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_path(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(body), 100_000):
            piece = body[at : at + 100_000]
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        for end in b"0\r\n\r\n":
            writer.write(bytes([end]))
            await asyncio.sleep(0.001)

    visit = Visit(["/"])
    connection = run(run_visit(slow, visit))
    assert visit.bodies == [body]
    assert connection.bytes_received == len(visit.responses[0].head + visit.responses[0].wire)


def test_http_10_ends_a_body_by_ending_the_connection(run: Run) -> None:
    visit = Visit(["/1", "/2"])
    run(run_visit(answering(b"HTTP/1.0 200 OK\r\n\r\nall of it"), visit))
    assert (visit.bodies, visit.failure, visit.unanswered) == ([b"all of it"], "", 0)
    assert not visit.responses[0].keep_alive and not visit.responses[0].hung_up


def test_a_server_that_allows_one_request_per_connection(run: Run) -> None:
    last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    for said in (last, last + b"junk"):
        visit = Visit(["/1", "/2", "/3"], at_once=3)
        run(run_visit(answering(said, ends=False), visit))
        assert (visit.bodies, visit.failure, visit.unanswered) == ([b"ok"], CLOSED, 2)
        assert not visit.responses[0].hung_up


def test_a_server_may_close_an_idle_connection(run: Run) -> None:
    visit = Visit(["/1"], closes=False)
    run(run_visit(answering(ANSWER), visit))
    assert (visit.bodies, visit.failure, visit.unanswered) == ([b"ok"], "", 0)


def test_idle_connections_are_closed_after_their_timeout(run: Run) -> None:
    for answer, limits in [
        (ANSWER, Limits(idle_s=0.02)),
        (ANSWER.replace(b"\r\n\r\n", b"\r\nKeep-Alive: timeout=1\r\n\r\n"), Limits(idle_s=99)),
    ]:
        visit = Visit(["/1"], closes=False)
        run(run_visit(answering(answer, ends=False), visit, limits))
        assert (visit.bodies, visit.failure, visit.unanswered) == ([b"ok"], "", 0)


# Servers that misbehave


def test_a_refused_connection(run: Run) -> None:
    async def refused() -> Visit:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            visit = Visit(["/"])
            loop = asyncio.get_running_loop()
            await until_over(open_connection(loop, "127.0.0.1", unused.getsockname()[1], visit, Limits()), visit)
        return visit

    assert run(refused()).events == ["lost"]
    assert run(refused()).failure == CONNECT


def test_a_connection_timeout(run: Run) -> None:
    async def full() -> Visit:
        """A listening socket with a full queue of length 0. The kernel leaves further connections unanswered."""
        with socket.socket() as server, contextlib.ExitStack() as others:
            server.bind(("127.0.0.1", 0))
            server.listen(0)
            for _ in range(4):
                other = others.enter_context(socket.socket())
                other.setblocking(False)
                other.connect_ex(server.getsockname())
            visit = Visit(["/"])
            loop = asyncio.get_running_loop()
            port = server.getsockname()[1]
            await until_over(open_connection(loop, "127.0.0.1", port, visit, Limits(connect_s=0.02)), visit)
        return visit

    assert run(full()).failure == CONNECT


def test_a_connection_closed_before_an_answer(run: Run) -> None:
    visit = Visit(["/1", "/2"], at_once=2)
    run(run_visit(answering(), visit))
    assert (visit.bodies, visit.failure, visit.unanswered) == ([], CLOSED, 2)


def test_a_reset_in_mid_body(run: Run) -> None:
    async def crash(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_path(reader)
        writer.write(ANSWER + b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
        await writer.drain()
        await asyncio.sleep(0.02)
        reset(writer)

    visit = Visit(["/1", "/2", "/3"], at_once=3)
    run(run_visit(crash, visit))
    assert (visit.bodies, visit.failure, visit.unanswered) == ([b"ok"], CLOSED, 2)


def test_a_content_length_that_is_too_long(run: Run) -> None:
    visit = Visit(["/1"])
    run(run_visit(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), visit))
    assert (visit.bodies, visit.failure, visit.unanswered) == ([], CLOSED, 1)


def test_a_content_length_that_is_too_short_ends_the_connection(run: Run) -> None:
    visit = Visit(["/1", "/2"])
    run(run_visit(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nlong", ends=False), visit))
    assert (visit.bodies, visit.failure, visit.unanswered) == ([b"l"], PROTOCOL, 0)
    assert not visit.responses[0].keep_alive and visit.responses[0].hung_up


def test_bytes_that_were_not_requested_end_the_connection(run: Run) -> None:
    async def talkative(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_path(reader)
        writer.write(ANSWER)
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(b"\r\n")
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(ANSWER)
        await reader.read()

    visit = Visit(["/1"], closes=False)
    run(run_visit(talkative, visit))
    assert (visit.bodies, visit.failure, visit.unanswered) == ([b"ok"], PROTOCOL, 0)


def test_a_server_that_answers_only_the_first_pipelined_request(run: Run) -> None:
    visit = Visit(["/1", "/2", "/3"], at_once=3)
    run(run_visit(answering(ANSWER), visit))
    assert (visit.bodies, visit.failure, visit.unanswered) == ([b"ok"], CLOSED, 2)


def test_a_server_that_does_not_speak_http(run: Run) -> None:
    visit = Visit(["/1"])
    run(run_visit(answering(b"220 mail.example.com ESMTP\r\n", ends=False), visit))
    assert (visit.failure, visit.unanswered) == (PROTOCOL, 1)


def test_endless_headers(run: Run) -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_path(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while not writer.is_closing():
            writer.write(b"A: b\r\n" * 500)
            await writer.drain()

    visit = Visit(["/1"])
    connection = run(run_visit(endless, visit))
    assert (visit.failure, visit.unanswered) == (TOO_LARGE, 1)
    assert connection.bytes_received < 2_000_000


def test_an_endless_body_is_cut(run: Run) -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_path(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(bytes(10_000))
            await writer.drain()

    visit = Visit(["/1", "/2"], at_once=2)
    run(run_visit(endless, visit, Limits(body_bytes=300_000)))
    assert (visit.responses[0].truncated, len(visit.bodies[0])) == ("length", 300_000)
    assert visit.responses[0].hung_up
    assert (visit.failure, visit.unanswered) == (CLOSED, 1)


def test_a_server_that_never_sends_the_first_byte(run: Run) -> None:
    visit = Visit(["/1", "/2"], at_once=2)
    run(run_visit(never, visit, Limits(first_byte_s=0.02)))
    assert (visit.bodies, visit.failure, visit.unanswered) == ([], TIMEOUT, 2)


@pytest.mark.parametrize(
    ("start", "truncated"),
    [(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", ["time"]), (b"HTTP/1.1 200 OK\r\nA: ", [])],
)
def test_a_server_that_sends_too_slowly(run: Run, start: bytes, truncated: list[str]) -> None:
    async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_path(reader)
        writer.write(start)
        while not writer.is_closing():
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.002)

    visit = Visit(["/1"])
    run(run_visit(dribble, visit, Limits(total_s=0.05)))
    assert [response.truncated for response in visit.responses] == truncated
    assert (visit.failure, visit.unanswered) == ("" if truncated else TIMEOUT, 1 - len(truncated))
    assert all(response.body and not response.body.strip(b".") for response in visit.responses)
    assert all(response.hung_up for response in visit.responses)


# Owners that stop a visit


def test_stopped_with_requests_unanswered(run: Run) -> None:
    visit = Visit(["/1", "/2", "/3"], at_once=3, stop_after=1)
    run(run_visit(echo, visit))
    assert (visit.bodies, visit.failure, visit.unanswered) == ([b"/1"], STOPPED, 2)


def test_stopped_while_connecting(run: Run) -> None:
    async def stopped() -> Visit:
        server = await asyncio.start_server(quiet(echo), "127.0.0.1", 0)
        async with server:
            visit = Visit(["/"])
            port = server.sockets[0].getsockname()[1]
            connection = open_connection(asyncio.get_running_loop(), "127.0.0.1", port, visit, Limits())
            connection.close()
            assert visit.events == []  # the event does not come from inside the call
            await until_over(connection, visit)
            await asyncio.sleep(0.02)
        return visit

    visit = run(stopped())
    assert (visit.events, visit.failure) == (["lost"], STOPPED)


def test_requests_may_be_sent_only_while_connected(run: Run) -> None:
    async def early_and_late() -> None:
        visit = Visit(["/"])
        loop = asyncio.get_running_loop()
        connection = open_connection(loop, "127.0.0.1", 1, visit, Limits())
        with pytest.raises(InvariantError):
            connection.send(b"GET / HTTP/1.1\r\n\r\n")
        await until_over(connection, visit)
        with pytest.raises(InvariantError):
            connection.send(b"GET / HTTP/1.1\r\n\r\n")

    run(early_and_late())


@pytest.mark.parametrize("address", ["localhost", "127.1", "", "example.com", "fe80::1%lo", "::1]", "0x7f000001"])
def test_only_ip_addresses_are_accepted(address: str) -> None:
    with asyncio.Runner() as runner, pytest.raises(InvariantError):
        open_connection(runner.get_loop(), address, 80, Visit([]), Limits())


def test_small_requests_are_sent_without_delay(run: Run) -> None:
    visit = Visit(["/1"])

    async def nodelay() -> int:
        seen: list[int] = []
        old = visit.received

        def look(connection: Connection, response: Response) -> None:
            assert connection._transport is not None
            raw = connection._transport.get_extra_info("socket")
            seen.append(raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            old(connection, response)

        visit.received = look  # type: ignore[method-assign]
        await run_visit(echo, visit)
        return seen[0]

    assert run(nodelay()) != 0


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA, name: str = "example.com") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = tls_context()
    authority.configure_trust(context)
    return context


def test_a_request_over_tls_sends_the_host_name(run: Run, authority: trustme.CA) -> None:
    names: list[str | None] = []
    server = server_context(authority)
    server.sni_callback = lambda _socket, name, _context: names.append(name)
    visit = Visit(["/1", "/2", "/3"], at_once=2)
    run(run_visit(echo, visit, server_tls=server, client_tls=trusting(authority)))
    assert (visit.bodies, visit.failure, names) == ([b"/1", b"/2", b"/3"], "", ["example.com"])


def test_a_body_that_ends_with_tls(run: Run, authority: trustme.CA) -> None:
    visit = Visit(["/1"])
    close_delimited = answering(b"HTTP/1.0 200 OK\r\n\r\n" + bytes(100_000))
    run(run_visit(close_delimited, visit, server_tls=server_context(authority), client_tls=trusting(authority)))
    assert ([len(body) for body in visit.bodies], visit.failure) == ([100_000], "")


def test_certificates_are_verified_by_default(run: Run, authority: trustme.CA) -> None:
    for client, name, failure in [
        (tls_context(), "example.com", TLS),
        (trusting(authority), "other.example.com", TLS),
        (trusting(authority), "a" * 70 + ".example.com", TLS),  # longer than any valid name, so that it cannot be sent
        (tls_context(insecure=True), "other.example.com", ""),
    ]:
        visit = Visit(["/1"])
        run(run_visit(echo, visit, server_tls=server_context(authority), client_tls=client, name=name))
        assert visit.failure == failure


def test_a_server_that_speaks_no_tls(run: Run, authority: trustme.CA) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read(1)

    for server in (hang_up, plain):
        visit = Visit(["/1"])
        run(run_visit(server, visit, client_tls=trusting(authority)))
        assert (visit.failure, visit.events) == (TLS, ["lost"])


def test_a_handshake_that_never_ends(run: Run, authority: trustme.CA) -> None:
    visit = Visit(["/1"])
    run(run_visit(never, visit, Limits(connect_s=0.05), client_tls=trusting(authority)))
    assert (visit.failure, visit.events) == (CONNECT, ["lost"])


# Throttled


@pytest.mark.parametrize("tls", [False, True])
def test_throttled_connections_read_complete_responses(run: Run, authority: trustme.CA, tls: bool) -> None:
    """Time in which the throttle delays the connection does not count against the server."""
    body = bytes(400_000)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n" + body

    async def throttled() -> Visit:
        visit = Visit(["/1", "/2"])
        link = BandwidthLimit(asyncio.get_running_loop(), 20_000_000.0)
        throttle = Throttle(link, 10_000_000.0)
        server = server_context(authority) if tls else None
        client = trusting(authority) if tls else None
        await run_visit(answering(answer, answer), visit, Limits(), server, client, throttle=throttle)
        return visit

    visit = run(throttled())
    assert (visit.bodies, visit.failure) == ([body, body], "")


def test_a_connection_that_joins_a_full_link_reads_nothing_before_its_turn(run: Run) -> None:
    async def joined() -> None:
        visit = Visit(["/1"])
        loop = asyncio.get_running_loop()
        link = BandwidthLimit(loop, 1_000_000.0)
        link.rate.take(60_000_000, monotonic())  # the bytes of a minute
        answered = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await answering(ANSWER)(reader, writer)
            answered.set()
            await reader.read()

        server = await asyncio.start_server(quiet(serve), "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            limits = Limits(first_byte_s=0.001, total_s=0.001)
            connection = open_connection(loop, "127.0.0.1", port, visit, limits, throttle=Throttle(link))
            await answered.wait()
            await asyncio.sleep(0.03)
            connection.sweep(monotonic())
            assert (connection.bytes_received, visit.events) == (0, ["connected"])
            assert connection.resume()
            await asyncio.wait_for(visit.over.wait(), 5)
        assert (visit.bodies, visit.failure) == ([b"ok"], "")

    run(joined())
