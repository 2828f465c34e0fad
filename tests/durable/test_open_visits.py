"""The visits under way: pages are handed out in turn, at most so many per site, and end with all that was noted about them."""

from trapline.durable import QueuedPage, UrlVisit
from trapline.durable.open_visits import OpenVisits


def visit(number: int, pages: int) -> UrlVisit:
    return UrlVisit(
        number, f"s{number}", [QueuedPage(10 * number + n, f"http://s{number}/{n}", b"") for n in range(pages)], 0.0
    )


def handed_out(visits: OpenVisits[int]) -> list[int]:
    """Hand out all that may be downloaded now, and return the numbers of the pages."""
    found = []
    while (one := visits.next_page()) is not None:
        visits.hand_out(*one, one[1].id)
        found.append(one[1].id)
    return found


def test_pages_of_a_site_follow_when_a_download_has_ended_and_visits_take_turns() -> None:
    visits = OpenVisits[int](per_site=2)
    visits.begin(visit(1, 3))
    visits.begin(visit(2, 1))
    assert visits.has_pages and handed_out(visits) == [10, 20, 11] and not visits.has_pages
    visits.downloaded(10)
    visits.downloaded(10)  # said twice, as by a retry
    assert handed_out(visits) == [12]


def test_a_visit_is_over_when_its_pages_have_ended_and_has_failed_if_none_was_answered() -> None:
    visits = OpenVisits[int](per_site=2)
    for number in (1, 2):
        visits.begin(visit(number, 2))
    assert handed_out(visits) == [10, 20, 11, 21]
    for page in (10, 11, 20, 21):
        running = visits.find(page)
        assert running is not None
        running.was_sent, running.is_answered = True, page == 11
    assert [running.page.id for running in visits.ended_but({11})] == [10, 20, 21]
    assert [(one.visit.id, one.has_failed) for one in visits.over()] == [(2, True)]
    visits.end(11)
    assert [(one.visit.id, one.has_failed) for one in visits.over()] == [(1, False)]
    assert not len(visits) and visits.find(11) is None


def test_all_visits_can_be_stopped() -> None:
    visits = OpenVisits[int]()
    visits.begin(visit(1, 2))
    assert handed_out(visits) == [10]
    assert [one.visit.id for one in visits.stop()] == [1] and not len(visits)
