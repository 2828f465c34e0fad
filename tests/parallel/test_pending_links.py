"""Links that wait are merged by URL, keep the order in which they were found, and survive a kill after any commit."""

from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.crawler.engine.records import PartitionTraffic, PendingLink
from trapline.crawler.files.layout import DATABASE, claim_new
from trapline.crawler.files.reading import Reading
from trapline.crawler.store.database import Database
from trapline.parallel.live.pending_links import PendingLinks

LINKS = st.builds(
    PendingLink, st.sampled_from([f"http://a.test/{n}" for n in range(6)]), st.integers(1, 3), st.integers(0, 9), st.just(0.25)
)  # fmt: skip
EVENTS = st.lists(st.one_of(LINKS, st.none(), st.integers(1, 4), st.sampled_from(["commit", "kill"])), max_size=40)


def add(rows: dict[str, PendingLink], link: PendingLink) -> None:
    """Do in plain Python what `PendingLinks.add` does."""
    old = rows.get(link.url, PendingLink(link.url, 0, 99, 0.0))
    rows[link.url] = PendingLink(link.url, old.links + link.links, min(old.depth, link.depth), old.share + link.share)


class Disk:
    """The rows on disk after each batch, as crawl.db keeps them."""

    def __init__(self) -> None:
        self.rows: dict[str, PendingLink] = {}

    def write(self, links: list[PendingLink], gone: list[str]) -> None:
        for url in gone:
            del self.rows[url]
        for link in links:
            add(self.rows, link)

    def read(self, most: int | None) -> list[PendingLink]:
        return list(self.rows.values())[:most]


@settings(deadline=None)
@given(EVENTS, st.one_of(st.none(), st.integers(1, 4)))
def test_rows_are_those_of_the_last_commit_after_a_kill(
    events: list[PendingLink | int | str | None], most: int | None
) -> None:
    """`events`: a link is found; rows are taken, all (None) or the first n; a batch is committed; the process is killed.
    `most`: rows that stay in memory."""
    disk = Disk()
    pending = PendingLinks(disk.read, most)
    expected: dict[str, PendingLink] = {}
    committed: dict[str, PendingLink] = {}

    def commit() -> None:
        disk.write(*pending.take_changes())
        committed.clear()
        committed.update(expected)
        assert not pending.has_changes
        assert disk.rows == expected and list(disk.rows) == list(expected)
        assert most is None or len(pending._rows) <= most

    def take(count: int | None) -> list[PendingLink]:
        if pending.must_load:
            commit()
            pending.load()
        wanted = list(expected.values())[:count]
        taken = pending.take(count)
        assert taken == wanted[: len(taken)] and bool(taken) == bool(wanted)
        assert most is not None or taken == wanted
        for row in taken:
            del expected[row.url]
        return taken

    for event in events:
        if isinstance(event, PendingLink):
            pending.add(event)
            add(expected, event)
        elif event == "commit":
            commit()
        elif event == "kill":
            pending = PendingLinks(disk.read, most)
            expected = dict(committed)
        else:
            take(None if event is None else int(event))
    while take(2):
        pass
    assert not expected and not pending


def test_the_database_keeps_rows_in_the_order_in_which_they_were_found(tmp_path: Path) -> None:
    claim_new(tmp_path / "c", {}, None).release()
    database = Database(tmp_path / "c" / DATABASE)
    first, second, third = (PendingLink(f"http://a.test/{n}", 1, n, 0.5) for n in range(3))
    database._add_traffic(PartitionTraffic(pending=[second, first]))
    database._add_traffic(PartitionTraffic(pending=[third, second._replace(links=7, depth=4)], urls=[(1, 2)]))
    with closing(Reading(tmp_path / "c")) as reading:
        second = PendingLink(second.url, 8, 1, 1.0)
        assert reading.pending_links() == [second, first, third]
        assert reading.pending_links(2) == [second, first]
        database._add_traffic(PartitionTraffic(not_pending=[first.url]))
        assert reading.pending_links() == [second, third]
    database.close()
