"""Limits of one fetch, in seconds and bytes. Only numbers; comments name the module that enforces each. Step 5 in
docs/architecture.md."""

from dataclasses import dataclass, fields

from trapline.errors import ConfigError

_MOST_BYTES = 1 << 29  # of a body: in UTF-8 it may be three times as long, and offsets must stay below 2^31


@dataclass(frozen=True)
class Limits:
    # Enforced by fetch/http/connection.py at each sweep, so up to one sweep late:
    connect_s: float = 15.0  # TCP, and TLS if used
    first_byte_s: float = 30.0  # from when the server has this request and no earlier one to answer
    total_s: float = 120.0  # from the same moment to the last byte of the response
    idle_s: float = 5.0  # between a response and the next request; less if the server announces less
    # Enforced by fetch/http/http1.py:
    header_bytes: int = 64 * 1024  # of a head, including the interim responses before it
    headers: int = 256  # header lines
    body_bytes: int = 10 * 1024 * 1024  # as received, including chunk sizes and trailers; the body is truncated there
    # Enforced by fetch/http/content.py:
    expanded_bytes: int = 50 * 1024 * 1024  # after content decoding

    def __post_init__(self) -> None:
        for name in ("body_bytes", "expanded_bytes"):
            if getattr(self, name) > _MOST_BYTES:
                raise ConfigError(f"the limit {name} must be at most {_MOST_BYTES:,}, not {getattr(self, name):,}")
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ConfigError(f"the limit {field.name} must be above 0, not {getattr(self, field.name)}")
