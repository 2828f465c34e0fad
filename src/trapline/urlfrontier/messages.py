"""The messages and calls of URLFrontier, built from urlfrontier.binpb, which `make protocol` compiles from urlfrontier.proto.

Generated Python modules demand the protobuf and grpcio of their generator or newer ones, and register their names for the whole process,
where a client's own copy of the same messages is an error. These classes have a pool of their own, and work with all versions.

>>> Long(value=3).value
3
>>> CALLS["PutURLs"].path, CALLS["PutURLs"].kind
('/urlfrontier.URLFrontier/PutURLs', 'stream_stream')
"""

from importlib.resources import files
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "urlfrontier"
_SERVICE = f"{_PACKAGE}.URLFrontier"


class CallType(NamedTuple):
    path: str
    kind: str  # as in `grpc.Channel`: unary_unary, unary_stream or stream_stream
    request: Any  # the class of the message
    response: Any


def _pool() -> Any:
    pool: Any = descriptor_pool.DescriptorPool()
    data = (files("trapline.urlfrontier") / "urlfrontier.binpb").read_bytes()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def _calls(pool: Any) -> dict[str, CallType]:
    calls = {}
    for method in pool.FindServiceByName(_SERVICE).methods:
        kind = "_".join(
            "stream" if is_stream else "unary" for is_stream in (method.client_streaming, method.server_streaming)
        )
        request, response = (message_factory.GetMessageClass(kind) for kind in (method.input_type, method.output_type))
        calls[method.name] = CallType(f"/{_SERVICE}/{method.name}", kind, request, response)
    return calls


_POOL = _pool()
CALLS = _calls(_POOL)


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


AckMessage = _message("AckMessage")
Active = _message("Active")
AnyCrawlID = _message("AnyCrawlID")
BatchAck = _message("BatchAck")
BlockQueueParams = _message("BlockQueueParams")
Boolean = _message("Boolean")
CountUrlParams = _message("CountUrlParams")
CrawlLimitParams = _message("CrawlLimitParams")
DeleteCrawlMessage = _message("DeleteCrawlMessage")
DiscoveredBatch = _message("DiscoveredBatch")
DiscoveredURLItem = _message("DiscoveredURLItem")
Empty = _message("Empty")
GetParams = _message("GetParams")
KnownURLItem = _message("KnownURLItem")
ListUrlParams = _message("ListUrlParams")
Local = _message("Local")
LogLevelParams = _message("LogLevelParams")
Long = _message("Long")
Pagination = _message("Pagination")
PurgeUrlParams = _message("PurgeUrlParams")
QueueDelayParams = _message("QueueDelayParams")
QueueList = _message("QueueList")
QueueWithinCrawlParams = _message("QueueWithinCrawlParams")
Stats = _message("Stats")
StringList = _message("StringList")
URLInfo = _message("URLInfo")
URLItem = _message("URLItem")
URLStatusRequest = _message("URLStatusRequest")
OK, SKIPPED, FAIL = range(3)  # AckMessage.Status


class Stub:
    """A client: one method per call, each as grpc generates it. `channel`: of `grpc` or of `grpc.aio`."""

    def __init__(self, channel: Any) -> None:
        for name, call in CALLS.items():
            method = getattr(channel, call.kind)
            setattr(self, name, method(call.path, call.request.SerializeToString, call.response.FromString))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name!r} is no call of URLFrontier")
