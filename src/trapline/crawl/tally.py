"""What a crawl has done so far, in numbers. Whoever drives counts; whoever shows reads."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    fetched: int = 0  # pages: answers of 200 to 399
    in_flight: int = 0  # pages requested and not answered
    bytes: int = 0  # received, robots.txt included
    requests: int = 0
    errors: Counter[str] = field(default_factory=Counter)  # by kind; refusals by robots.txt are none
    statuses: Counter[int] = field(default_factory=Counter)
    disallowed: int = 0  # pages that robots.txt keeps us from
    given_up: Counter[str] = field(default_factory=Counter)  # sites, by kind
    quality: float = 0.0  # of the pages fetched, each as it was when it was taken
    recent: Counter[int] = field(default_factory=Counter)  # pages by site, since somebody last looked
    seconds_before: float = 0.0  # of crawling, in earlier runs

    @property
    def failed(self) -> int:
        return sum(self.errors.values())
