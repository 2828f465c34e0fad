"""Settings of the store. They are passed to the store process as JSON when it starts; they only check their values."""

import json
from dataclasses import asdict, dataclass, fields

from trapline.crawler.files.event_log import JSON, LOG_BYTES
from trapline.errors import ConfigError

# Names for users.
_TEXTS = {
    "name": "the prefix of WARC files",
    "software": "software",
    "user_agent": "user_agent",
    "operator": "operator",
    "robots": "robots",
}


@dataclass(frozen=True)
class StoreSettings:
    name: str = "trapline"  # archives are NAME-00000.warc.gz, ...
    software: str = "Trapline"  # name and version of the software; this and the next three are fields of warcinfo
    user_agent: str = ""
    operator: str = ""  # who is responsible for this crawl
    robots: str = "obey"  # the robots policy
    warc_bytes: int = 1_000_000_000  # when an archive has reached this size, the next one is begun
    gzip_level: int = 1  # level of isal, up to 3; 0 takes half the time and an eighth more space
    metadata: bool = False  # write a metadata record per page, with its links as found
    revisits: int = 65_536  # number of bodies remembered to avoid storing identical ones twice; 0: none
    backlog_bytes: int = 16_000_000  # bytes sent and not committed; beyond this the store is `full`
    backlog_batches: int = 256
    log_level: str = "info"  # of crawl.log; at debug it has one line per fetch
    log_format: str = JSON  # of crawl.log
    log_bytes: int = LOG_BYTES  # when crawl.log has reached this size, the next one is begun

    def __post_init__(self) -> None:
        for text in _TEXTS:
            if not getattr(self, text).isprintable():  # each becomes one line in an archive
                raise ConfigError(f"{_TEXTS[text]} must be one line of printable text: {getattr(self, text)!r}")
        if not self.name or "/" in self.name or self.name.startswith("."):
            raise ConfigError(
                f"the prefix of WARC files must be a file name without '/' and without a leading dot: {self.name!r}"
            )
        if self.gzip_level not in range(4):
            raise ConfigError(f"gzip_level must be 0, 1, 2 or 3: {self.gzip_level}")
        for number in ("warc_bytes", "backlog_bytes", "backlog_batches"):
            if getattr(self, number) < 1:
                raise ConfigError(f"{number} must be positive: {getattr(self, number)}")

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "StoreSettings":
        given = json.loads(text)
        return cls(**{field.name: given[field.name] for field in fields(cls)})
