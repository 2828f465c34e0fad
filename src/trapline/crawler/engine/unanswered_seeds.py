"""Seeds whose sites do not answer: the user learns this at once, and not only when the crawl ends."""

from trapline.fetch import failure
from trapline.frontier import Rules
from trapline.units import duration

WORDS = {
    failure.ROBOTS: "its robots.txt cannot be read (an error of the server)",
    failure.TIMEOUT: "no answer in time",
    failure.CLOSED: "the server closed the connection",
    failure.ADDRESS: "the crawl may not connect to its address",
    failure.PROTOCOL: "the answer is not HTTP",
}
_MOST_UNANSWERED = 5
_MOST_DOUBLINGS = 64  # of a back-off, which has its longest time long before


class UnansweredSeeds:
    """Notes for the user, one for each of the first seeds that did not answer. The crawler adds them; the view shows each once."""

    def __init__(self, abandon: int, rules: Rules) -> None:
        """`abandon`: number of failed visits after which a site is abandoned. `rules`: they have the back-off."""
        self._abandon, self._rules = abandon, rules
        self._new = ""  # a note without the time of the next visit, which is known when the visit has ended
        self._seen: set[str] = set()
        self.refused: set[int] = set()  # sites that refused the last connection, and are not abandoned
        self.notes: list[str] = []

    def note(self, url: str, why: str) -> None:
        if url not in self._seen and len(self._seen) <= _MOST_UNANSWERED:
            self._seen.add(url)
            self._new = f"{url}: {why}" if len(self._seen) <= _MOST_UNANSWERED else "more seeds do not answer"

    def visit_ended(self, seconds: float, failures: int, is_end: bool) -> None:
        """Complete the last note, whose visit has ended. `seconds`: until the next visit may begin. `failures`: failed visits in
        a row. `is_end`: no seed can be reached, and the crawl ends."""
        if self._new:
            self.notes.append(f"{self._new}; {self._what_follows(seconds, failures, is_end)}")
            self._new = ""

    def _what_follows(self, seconds: float, failures: int, is_end: bool) -> str:
        if is_end:
            return "no seed can be reached, so the crawl ends; check the address"
        if self._abandon == 1:
            return "the crawl does not try again (--max-failed-visits 1)"
        return (
            f"next attempt in {duration(seconds)}; after {self._abandon} failed attempts, in"
            f" {duration(seconds + self._later_s(failures))}, the crawl abandons this site; check the address"
            " (--max-failed-visits 1: abandon it at the first failure)"
        )

    def _later_s(self, failures: int) -> float:
        """Return the back-off after the next attempt, until the last one."""
        first_s, most_s, waits = self._rules.backoff_s, self._rules.backoff_most_s, self._abandon - 1
        doubling = sum(min(first_s * 2.0**n, most_s) for n in range(failures, min(waits, _MOST_DOUBLINGS)))
        return doubling + max(waits - _MOST_DOUBLINGS, 0) * most_s
