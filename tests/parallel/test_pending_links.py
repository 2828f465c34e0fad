"""Links that wait are merged by URL, keep the order in which they were found, and survive a kill after any commit."""

from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.crawl.engine.records import PartitionTraffic, PendingLink
from trapline.crawl.files.layout import DATABASE, claim_new
from trapline.crawl.files.reading import Reading
from trapline.crawl.store.database import Database
from trapline.parallel.live.pending_links import PendingLinks

LINKS = st.builds(
    PendingLink, st.sampled_from([f"http://a.test/{n}" for n in range(6)]), st.integers(1, 3), st.integers(0, 9), st.just(0.25)
)  # fmt: skip
EVENTS = st.lists(st.one_of(LINKS, st.none(), st.integers(1, 4), st.sampled_from(["commit", "kill"])), max_size=40)


def add(rows: dict[str, PendingLink], link: PendingLink) -> None:
    """Do in plain Python what `PendingLinks.add` does."""
    old = rows.get(link.url, PendingLink(link.url, 0, 99, 0.0))
    rows[link.url] = PendingLink(link.url, old.links + link.links, min(old.depth, link.depth), old.share + link.share)


@settings(deadline=None)
@given(EVENTS)
def test_rows_are_those_of_the_last_commit_after_a_kill(
    events: list[PendingLink | int | str | None],
) -> None:
    """`events`: a link is found; rows are taken, all (None) or the first n; a batch is committed; the process is killed."""
    pending, disk = PendingLinks(), PendingLinks()
    expected: dict[str, PendingLink] = {}
    committed: dict[str, PendingLink] = {}
    for event in events:
        if isinstance(event, PendingLink):
            pending.add(event)
            add(expected, event)
        elif event == "commit":
            changed, gone = pending.take_changes()
            disk = PendingLinks(written(disk, changed, gone))
            committed = dict(expected)
            assert not pending.has_changes
        elif event == "kill":
            rows = written(disk, [], [])
            disk, pending, expected = PendingLinks(rows), PendingLinks(rows), dict(committed)
        else:
            count = None if event is None else int(event)
            wanted = list(expected.values())[:count]
            assert pending.take(count) == wanted
            for row in wanted:
                del expected[row.url]
    assert pending.take() == list(expected.values())


def written(disk: PendingLinks, changed: list[PendingLink], gone: list[str]) -> list[PendingLink]:
    """Return the rows of a disk in order, after a batch."""
    rows = {row.url: row for row in disk.take() if row.url not in gone}
    return list((rows | {row.url: row for row in changed}).values())


def test_the_database_keeps_rows_in_the_order_in_which_they_were_found(tmp_path: Path) -> None:
    claim_new(tmp_path / "c", {}, None).release()
    database = Database(tmp_path / "c" / DATABASE)
    first, second, third = (PendingLink(f"http://a.test/{n}", 1, n, 0.5) for n in range(3))
    database._add_traffic(PartitionTraffic(pending=[second, first]))
    database._add_traffic(PartitionTraffic(pending=[third, second._replace(links=7)], urls=[(1, 2)]))
    with closing(Reading(tmp_path / "c")) as reading:
        assert reading.pending_links() == [second._replace(links=7), first, third]
        database._add_traffic(PartitionTraffic(not_pending=[first.url]))
        assert reading.pending_links() == [second._replace(links=7), third]
    database.close()
