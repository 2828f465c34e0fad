"""A proxy between the crawler and all servers: HTTP (CONNECT) or SOCKS5. Part of step 5 in docs/architecture.md.

`tunnel` opens a connection through the proxy, over which the crawler then speaks as if it were connected to the server itself.
The address guard has checked the server's address before, and the proxy is told to connect to that very address. With `names`, the
proxy gets the name of the server instead and looks it up itself: then nobody has checked the address that it finds
(docs/how-to/authenticated-crawls.md). No message of this module has the proxy's password.
"""

import asyncio
import os
import re
import socket
import struct
from dataclasses import dataclass, field, replace

from trapline.errors import ConfigError
from trapline.fetch.http.credentials import basic

HTTP, SOCKS5 = "http", "socks5"
_PORTS = {HTTP: 3128, SOCKS5: 1080}
_URL = re.compile(
    r"(?:(?P<kind>[a-z0-9+.-]+)://)?(?P<host>\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::(?P<port>\d{1,5}))?/?", re.IGNORECASE
)
_CHECK_S = 5.0
_MOST_HEAD = 16 * 1024  # bytes of the proxy's answer to CONNECT
_ANSWERS = {  # of SOCKS5, RFC 1928
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "timed out",
    7: "command not supported",
    8: "address type not supported",
}


class ProxyError(OSError):
    """The proxy does not connect to the server."""


class ProxyUnavailableError(ProxyError):
    """There is no connection to the proxy itself, or it does not accept us. No server is at fault."""


@dataclass(frozen=True, slots=True)
class Proxy:
    kind: str  # HTTP or SOCKS5
    host: str
    port: int
    names: bool = False  # whether it gets names of servers, and looks them up itself
    address: str = ""  # of the proxy; "": not looked up
    login: tuple[str, str] | None = field(default=None, repr=False)  # name and password

    @property
    def url(self) -> str:
        """The proxy as the user names it, without its password."""
        return f"{self.kind}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def located(self) -> "Proxy":
        """Return the proxy with its address. This may wait for a name server. Raise `ConfigError` if it has none."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise ConfigError(f"--proxy {self.url}: no such host ({error.strerror}); check its spelling") from None
        return replace(self, address=str(found[0][4][0]))

    def check(self) -> None:
        """Raise `ConfigError` if there is no connection to the proxy, or its credentials cannot be sent."""
        if self.kind == SOCKS5 and self.login and not all(0 < len(part.encode()) < 256 for part in self.login):
            raise ConfigError(
                "[proxy] of --credentials: SOCKS5 needs a user and a password of 1 to 255 bytes; correct them"
            )
        try:
            socket.create_connection((self.address, self.port), timeout=_CHECK_S).close()
        except OSError as error:
            raise ConfigError(
                f"--proxy {self.url}: no connection: {_reason(error)}; start the proxy, or correct its address"
            ) from None

    @property
    def authorization(self) -> bytes:
        """The header line with its credentials; b"": it has none."""
        return f"Proxy-Authorization: Basic {basic(*self.login)}\r\n".encode() if self.login else b""

    @property
    def wants_credentials(self) -> str:
        """The reason of a proxy that does not accept us, for people."""
        other = "other " if self.login else ""
        return f"the proxy wants {other}credentials; put them into [proxy] of --credentials FILE"

    def sees_requests(self, is_secure: bool) -> bool:
        """Return whether the proxy gets the requests themselves, with whole URLs, instead of a tunnel."""
        return self.kind == HTTP and self.names and not is_secure


def read_proxy(text: str, names: bool = False) -> Proxy:
    """Read the URL of a proxy. Raise `ConfigError` if it is none, or has a password.

    >>> read_proxy("socks5://127.0.0.1")
    Proxy(kind='socks5', host='127.0.0.1', port=1080, names=False, address='')
    """
    if "@" in text:
        raise ConfigError(
            "--proxy: a password would be visible to others; put user and password into [proxy] of --credentials FILE"
        )
    found = _URL.fullmatch(text)
    kind = (found["kind"] or HTTP).lower() if found else ""
    if kind == "socks5h":
        raise ConfigError("--proxy: for a proxy that looks up names itself give socks5:// and --proxy-names")
    if found is None or kind not in _PORTS or not 0 < int(found["port"] or _PORTS[kind]) < 65_536:
        raise ConfigError(f"--proxy {text!a}: not a proxy; give http://HOST:PORT or socks5://HOST:PORT")
    return Proxy(kind, found["host"].strip("[]"), int(found["port"] or _PORTS[kind]), names)


def _reason(error: OSError) -> str:
    """Return why there is no connection, in the words of the system."""
    return os.strerror(error.errno).lower() if error.errno else str(error)


# ---- connecting


async def tunnel(
    loop: asyncio.AbstractEventLoop, proxy: Proxy, address: str, port: int, name: str, is_secure: bool
) -> socket.socket:
    """Return a socket that is connected through the proxy to the server, at this address or by this name. Raise `OSError` if
    that fails."""
    end = await _connected(loop, proxy)
    try:
        if not proxy.sees_requests(is_secure):
            connect = _connect_http if proxy.kind == HTTP else _connect_socks
            await connect(loop, end, proxy, name if proxy.names else address, port)
    except BaseException:
        end.close()
        raise
    return end


async def _connected(loop: asyncio.AbstractEventLoop, proxy: Proxy) -> socket.socket:
    end = socket.socket(socket.AF_INET6 if ":" in proxy.address else socket.AF_INET, socket.SOCK_STREAM)
    end.setblocking(False)
    try:
        await loop.sock_connect(end, (proxy.address, proxy.port))
    except OSError as error:
        end.close()
        raise ProxyUnavailableError(f"no connection to the proxy: {_reason(error)}") from None
    except BaseException:
        end.close()
        raise
    return end


async def _connect_http(
    loop: asyncio.AbstractEventLoop, end: socket.socket, proxy: Proxy, host: str, port: int
) -> None:
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    request = f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n".encode() + proxy.authorization + b"\r\n"
    await loop.sock_sendall(end, request)
    head = b""
    while b"\r\n\r\n" not in head and len(head) <= _MOST_HEAD:
        if not (more := await loop.sock_recv(end, 4096)):
            raise ProxyError("the proxy closed the connection")
        head += more
    status = head[9:12]
    if not head.startswith(b"HTTP/1.") or not status.isdigit():
        raise ProxyError("the proxy does not speak HTTP")
    if not head.endswith(b"\r\n\r\n") and status[:1] == b"2":
        raise ProxyError("the proxy sent more than its answer")
    if status == b"407":
        raise ProxyUnavailableError(proxy.wants_credentials)
    if status[:1] != b"2":
        hint = "" if proxy.names or status[:1] == b"5" else "; some proxies want names: --proxy-names"
        raise ProxyError(f"the proxy answered {status.decode()} to CONNECT {where}{hint}")


async def _connect_socks(
    loop: asyncio.AbstractEventLoop, end: socket.socket, proxy: Proxy, host: str, port: int
) -> None:
    """Connect by RFC 1928, with a name and password by RFC 1929."""
    await loop.sock_sendall(end, b"\x05\x02\x00\x02" if proxy.login else b"\x05\x01\x00")
    version, method = await _exactly(loop, end, 2)
    if version != 5 or method not in ((0, 2) if proxy.login else (0,)):
        wants = "it wants credentials; put them into [proxy] of --credentials FILE"
        raise ProxyUnavailableError(f"the proxy refused: {wants if method in (2, 255) else 'it does not speak SOCKS5'}")
    if method == 2 and proxy.login:
        user, password = (part.encode() for part in proxy.login)
        await loop.sock_sendall(end, bytes([1, len(user)]) + user + bytes([len(password)]) + password)
        if (await _exactly(loop, end, 2))[1] != 0:
            raise ProxyUnavailableError("the proxy refused the credentials in [proxy] of --credentials")
    await loop.sock_sendall(end, b"\x05\x01\x00" + _socks_address(host) + struct.pack(">H", port))
    _, code, _, kind = await _exactly(loop, end, 4)
    if code != 0:
        raise ProxyError(f"the proxy did not connect: {_ANSWERS.get(code, f'error {code}')}")
    length = {1: 4, 4: 16}.get(kind) or (await _exactly(loop, end, 1))[0]
    await _exactly(loop, end, length + 2)  # the address and port that the proxy connects from


def _socks_address(host: str) -> bytes:
    for kind, family in ((b"\x01", socket.AF_INET), (b"\x04", socket.AF_INET6)):
        try:
            return kind + socket.inet_pton(family, host)
        except OSError:
            continue
    name = host.encode("ascii")
    return b"\x03" + bytes([len(name)]) + name


async def _exactly(loop: asyncio.AbstractEventLoop, end: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        if not (more := await loop.sock_recv(end, length - len(data))):
            raise ProxyError("the proxy closed the connection")
        data += more
    return data
