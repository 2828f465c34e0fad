"""What one fetch may take: seconds and bytes. Numbers alone; who enforces each is named beside it. Step 5 of the way of a URL."""

from dataclasses import dataclass, fields

from trapline.errors import ConfigError

_MOST_BYTES = 1 << 29  # of a body: as UTF-8 it may be three times as long, and places in it are numbers below 2^31


@dataclass(frozen=True)
class Limits:
    # connection.py, when it is swept, so up to a sweep late:
    connect_s: float = 15.0  # TCP, and TLS on top of it
    first_byte_s: float = 30.0  # from the moment at which the server had this request and no other to answer
    total_s: float = 120.0  # from there to the last byte of the answer
    idle_s: float = 5.0  # between an answer and the next request; less if the server says so
    # http1.py:
    header_bytes: int = 64 * 1024  # of a head, with the interim responses before it
    headers: int = 256  # lines
    body_bytes: int = 10 * 1024 * 1024  # as received, chunk sizes and trailers included; cut there
    # content.py:
    expanded_bytes: int = 50 * 1024 * 1024  # after content decoding

    def __post_init__(self) -> None:
        for name in ("body_bytes", "expanded_bytes"):
            if getattr(self, name) > _MOST_BYTES:
                raise ConfigError(f"the limit {name} must be at most {_MOST_BYTES:,}, not {getattr(self, name):,}")
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ConfigError(f"the limit {field.name} must be above 0, not {getattr(self, field.name)}")
