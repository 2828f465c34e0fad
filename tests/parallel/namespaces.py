"""Two hosts and a web on one machine, each in its own network namespace, for tests and bench/live/hosts.py.

    near 10.77.0.1 ==== relay.py: delay, loss, cut ==== 10.77.0.2 far
        127.254.0.1 ---- web: 127.1.0.0/16, testweb ---- 127.254.0.2

The line between the hosts consists of a TUN device in each namespace and a process between them, because not every kernel has netem.
Both hosts reach the web over a line without delay or loss. The web has addresses of 127.0.0.0/8, because testweb serves no others; the
kernel can be told to route them between namespaces. No namespace has a name: each one ends with the last process and the last file
descriptor that hold it.
"""

import ctypes
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEAR, FAR = "10.77.0.1", "10.77.0.2"
_WEB = "127.1.0.0/16"  # first address of testweb, which has 65,024 of them
_SEEN_BY_WEB = {NEAR: "127.254.0.1", FAR: "127.254.0.2"}
_ANY_NAMESPACE = Path("/proc/thread-self/ns/net")
_NEW_NAMESPACE = 0x40000000  # CLONE_NEWNET, linux/sched.h
_TUN = Path("/dev/net/tun")
_NAME_TUN, _TUN_PLAIN = 0x400454CA, 0x1001  # TUNSETIFF; IFF_TUN | IFF_NO_PI; linux/if_tun.h
_END_S = 10.0

_libc = ctypes.CDLL(None, use_errno=True)  # os.setns and os.unshare came with Python 3.12


@dataclass(frozen=True, slots=True)
class Namespace:
    """A network of its own. It exists as long as `file` is open or a process is in it."""

    file: int

    @property
    def path(self) -> str:
        """Return the path by which other processes find the namespace."""
        return f"/proc/{os.getpid()}/fd/{self.file}"

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let this thread, and the sockets and processes that it opens, be in the namespace."""
        before = os.open(_ANY_NAMESPACE, os.O_RDONLY)
        _checked(_libc.setns(self.file, _NEW_NAMESPACE))
        try:
            yield
        finally:
            _checked(_libc.setns(before, _NEW_NAMESPACE))
            os.close(before)

    def ip(self, *words: str) -> None:
        """Run `ip` in the namespace."""
        with self.entered():
            subprocess.run(["ip", *words], check=True, capture_output=True)

    def command(self, *words: str) -> list[str]:
        """Return the prefix that runs a command in the namespace."""
        return ["nsenter", f"--net={self.path}", *words]


class Line:
    """The relay between the two hosts, and the orders to it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin and process.stdout
        self._orders, self._answers = process.stdin, process.stdout

    def cut(self) -> None:
        self._order(b"cut")

    def join(self) -> None:
        self._order(b"join")

    def counts(self) -> list[dict[str, int]]:
        """Return, for each direction, the packets and bytes that passed, and the packets that were lost, cut off, or are in flight."""
        self._order(b"count")
        answer: list[dict[str, int]] = json.loads(self._answers.readline())
        return answer

    def _order(self, order: bytes) -> None:
        self._orders.write(order + b"\n")
        self._orders.flush()


@dataclass(frozen=True, slots=True)
class Hosts:
    near: Namespace
    far: Namespace
    web: Namespace
    line: Line


def missing() -> str:
    """Return why this machine cannot have such hosts, or "" if it can."""
    for tool, package in (("ip", "iproute2"), ("nsenter", "util-linux")):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (Debian: {package})"
    try:
        with two_hosts():
            return ""
    except OSError as error:
        why = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    except subprocess.CalledProcessError as error:
        why = f"{' '.join(error.cmd)}: {error.stderr.decode(errors='replace').strip()}"
    return f"network namespaces with TUN and veth devices cannot be made here, only root may ({why})"


@contextmanager
def two_hosts(delay_s: float = 0.0, loss: float = 0.0) -> Iterator[Hosts]:
    """Yield two hosts. `delay_s` is the delay of a packet each way, and `loss` the share of lost packets."""
    with ExitStack() as stack:
        near, far, web = (stack.enter_context(_namespace()) for _ in range(3))
        devices = [stack.enter_context(_line_end(*end)) for end in ((near, NEAR, FAR), (far, FAR, NEAR))]
        for host, own in ((near, NEAR), (far, FAR)):
            _connect(host, web, _SEEN_BY_WEB[own])
        yield Hosts(near, far, web, stack.enter_context(_relayed(devices, delay_s, loss)))


@contextmanager
def _namespace() -> Iterator[Namespace]:
    before = os.open(_ANY_NAMESPACE, os.O_RDONLY)
    try:
        _checked(_libc.unshare(_NEW_NAMESPACE))
        made = Namespace(os.open(_ANY_NAMESPACE, os.O_RDONLY))
    finally:
        _checked(_libc.setns(before, _NEW_NAMESPACE))
        os.close(before)
    try:
        made.ip("link", "set", "lo", "up")
        yield made
    finally:
        os.close(made.file)


@contextmanager
def _line_end(host: Namespace, own: str, other: str) -> Iterator[int]:
    """Return the file of a TUN device that leads to the other host."""
    with host.entered():
        device = _tun("line")
    try:
        host.ip("address", "add", own, "peer", other, "dev", "line")
        host.ip("link", "set", "line", "up")
        yield device
    finally:
        os.close(device)


def _tun(name: str) -> int:
    device = os.open(_TUN, os.O_RDWR)
    try:
        fcntl.ioctl(device, _NAME_TUN, struct.pack("16sH22x", name.encode(), _TUN_PLAIN))
    except OSError:
        os.close(device)
        raise
    return device


def _connect(host: Namespace, web: Namespace, seen_as: str) -> None:
    """Send loopback addresses of the other side over a cable. More specific routes take precedence over those of loopback."""
    end = f"host{seen_as.rpartition('.')[2]}"
    web.ip("link", "add", end, "type", "veth", "peer", "name", "web", "netns", host.path)
    for namespace, device in ((host, "web"), (web, end)):
        with namespace.entered():
            _route_loopback()
        namespace.ip("link", "set", device, "up")
    host.ip("route", "add", _WEB, "dev", "web", "src", seen_as, "table", "local")
    web.ip("route", "add", f"{seen_as}/32", "dev", end, "table", "local")


def _route_loopback() -> None:
    Path("/proc/sys/net/ipv4/conf/all/route_localnet").write_text("1")


@contextmanager
def _relayed(devices: list[int], delay_s: float, loss: float) -> Iterator[Line]:
    script = Path(__file__).with_name("relay.py")
    process: subprocess.Popen[Any] = subprocess.Popen(
        [sys.executable, str(script), *map(str, (*devices, delay_s, loss))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=devices,
    )
    assert process.stdin and process.stdout
    try:
        yield Line(process)
    finally:
        process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
