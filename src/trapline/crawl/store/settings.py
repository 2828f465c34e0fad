"""What the store is told once, at its start. It crosses to the store's process as JSON; no behaviour beyond its checks."""

import json
from dataclasses import asdict, dataclass, fields

from trapline.errors import ConfigError

_TEXTS = ("name", "software", "user_agent", "operator", "robots")


@dataclass(frozen=True)
class StoreSettings:
    name: str = "trapline"  # archives are NAME-00000.warc.gz, ...
    software: str = "Trapline"  # and its version: for warcinfo, as the next three
    user_agent: str = ""
    operator: str = ""  # who answers for this crawl
    robots: str = "obey"  # the policy
    warc_bytes: int = 1_000_000_000  # an archive that has reached this is followed by the next
    gzip_level: int = 1  # of isal: 0 takes half the time and an eighth more room; 3 is the most
    metadata: bool = False  # a metadata record a page: its links as found
    revisits: int = 65_536  # bodies that are remembered, so that their like is not kept twice; 0: none
    backlog_bytes: int = 16_000_000  # on their way to the disk: beyond this the store is `full`
    backlog_batches: int = 256

    def __post_init__(self) -> None:
        for text in _TEXTS:
            if not getattr(self, text).isprintable():  # each becomes one line of an archive
                raise ConfigError(f"{text} must be one line of printable text: {getattr(self, text)!r}")
        if not self.name or "/" in self.name or self.name.startswith("."):
            raise ConfigError(f"the archives' name must be a file's name: {self.name!r}")
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
