"""The outbox sends everything to the store once, in order, in batches that are neither empty nor too large."""

from hypothesis import given
from hypothesis import strategies as st

from tests.crawler.store_world import fetched, robots
from trapline.crawler.engine.records import VISITS, AbandonedSite, Batch, CrawlProgress
from trapline.crawler.store.outbox import BYTES, FETCHES, Outbox
from trapline.frontier import Frontier
from trapline.frontier.journal import Journal
from trapline.strategies import load_strategy

PROGRESS = CrawlProgress(0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0)


def outbox(last_batch: int = 0, partitions: int = 1) -> tuple[Outbox, list[Batch]]:
    batches: list[Batch] = []
    box = Outbox(Journal(), batches.append, last_batch, partitions=partitions)
    box.stands = lambda: (PROGRESS, ())
    return box, batches


@given(
    st.lists(st.sampled_from([0, 1, 5000, BYTES // 3, 2 * BYTES]), max_size=150),
    st.sampled_from([(1, 1), (4, 1), (9, 2)]),
)
def test_fetches_leave_in_order_in_batches_of_limited_size(sizes: list[int], given: tuple[int, int]) -> None:
    partitions, factor = given
    box, batches = outbox(partitions=partitions)
    records = [fetched(page, bytes(size)) for page, size in enumerate(sizes)]
    for record in records:
        box.fetched(record)
    for batch in batches:
        weight = sum(len(fetch.wire) for fetch in batch.fetches)
        assert len(batch.fetches) == factor * FETCHES or weight >= factor * BYTES
        assert weight - len(batch.fetches[-1].wire) < factor * BYTES
    box.flush()
    assert [fetch for batch in batches for fetch in batch.fetches] == records
    assert [batch.number for batch in batches] == list(range(1, len(batches) + 1))


def test_an_empty_outbox_makes_no_batch() -> None:
    box, batches = outbox()
    box.flush()
    assert batches == [] and box.number == 0


def test_any_single_record_makes_a_batch() -> None:
    fills = {
        "sites": lambda box: box.sites.append((0, "http://a.org")),
        "pages": lambda box: box.pages.append((0, 0, "http://a.org/")),
        "robots": lambda box: box.robots.append(robots(0)),
        "abandoned_sites": lambda box: box.abandoned_sites.append(
            AbandonedSite(0, 1.0, VISITS, "5 failed visits in a row")
        ),
        "progress": lambda box: box.flush(is_due=True),
    }
    for name, fill in fills.items():
        box, batches = outbox(last_batch=6)
        fill(box)
        box.flush()
        box.flush()
        assert len(batches) == 1 and batches[0].number == 7 and getattr(batches[0], name), name


def test_every_batch_has_the_progress_after_it() -> None:
    box, batches = outbox()
    for page in range(3 * FETCHES + 1):
        box.stands = lambda page=page: (PROGRESS._replace(pages=page + 1), ())
        box.fetched(fetched(page, b""))
    box.flush()
    assert [batch.progress.pages for batch in batches if batch.progress] == [48, 96, 144, 145]


def test_the_log_of_the_frontier_is_in_the_batch_of_its_events() -> None:
    journal, batches = Journal(), list[Batch]()
    box = Outbox(journal, batches.append)
    frontier = Frontier(load_strategy("breadth-first"), journal=journal)
    frontier.add_sites(1, 0.0, [0])
    box.flush()
    frontier.add_pages([0])
    frontier.discover([0], 1.0)
    box.flush()
    box.flush()
    assert len(batches) == 2 and all(batch.calls for batch in batches)
