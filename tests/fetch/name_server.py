"""A small DNS server on loopback for tests. It answers from a table and counts the queries."""

import asyncio
import struct
from collections import Counter
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple

TYPE_A, TYPE_CNAME, TYPE_AAAA = 1, 5, 28
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME = 0, 2, 3


class Name(NamedTuple):
    """The answer for a name. An alias is answered with the records of the name that it stands for."""

    addresses: tuple[str, ...] = ()
    ttl_s: int = 300
    alias: str = ""
    code: int = NO_ERROR
    silent: bool = False


class NameServer(asyncio.DatagramProtocol):
    def __init__(self, names: Mapping[str, Name]) -> None:
        self.names = names
        self.queries: Counter[tuple[str, int]] = Counter()
        self.most_waiting = 0
        self.waiting = 0
        self.delay_s = 0.0

    async def start(self) -> str:
        """Start listening, and return "address:port"."""
        self.transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, ("127.0.0.1", 0))
        host, port = self.transport.get_extra_info("sockname")
        return f"{host}:{port}"

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        name, kind, question = _question(data)
        self.queries[name, kind] += 1
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        record = self.names.get(name, Name(code=NO_SUCH_NAME))
        if not record.silent:
            reply = data[:2] + self._reply(record, kind, question)
            asyncio.get_running_loop().call_later(self.delay_s, self._send, reply, sender)

    def _send(self, reply: bytes, receiver: tuple[str, int]) -> None:
        self.waiting -= 1
        self.transport.sendto(reply, receiver)

    def _reply(self, record: Name, kind: int, question: bytes) -> bytes:
        records = []
        owner = b"\xc0\x0c"  # the name in the question
        if record.alias:
            alias = _wire_name(record.alias)
            records.append(_record(owner, TYPE_CNAME, record.ttl_s, alias))
            owner, record = alias, self.names[record.alias]
        for address in map(ip_address, record.addresses):
            if kind == (TYPE_A if address.version == 4 else TYPE_AAAA):
                records.append(_record(owner, kind, record.ttl_s, address.packed))
        return struct.pack(">HHHHH", 0x8180 | record.code, 1, len(records), 0, 0) + question + b"".join(records)


def _question(data: bytes) -> tuple[str, int, bytes]:
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]])
        at += 1 + data[at]
    return b".".join(labels).decode().lower(), int.from_bytes(data[at + 1 : at + 3], "big"), data[12 : at + 5]


def _wire_name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def _record(owner: bytes, kind: int, ttl_s: int, data: bytes) -> bytes:
    return owner + struct.pack(">HHIH", kind, 1, ttl_s, len(data)) + data
