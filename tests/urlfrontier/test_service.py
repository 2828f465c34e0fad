"""The calls of URLFrontier, by a real client over a socket: what clients of the reference service rely on."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from tests.urlfrontier.service_world import Client, info, known, new, running
from trapline.durable.pages import PutPage
from trapline.urlfrontier import messages as m
from trapline.urlfrontier.intake import PutIntake
from trapline.urlfrontier.messages import FAIL, OK, SKIPPED

A, B, C = (f"http://a.example/{name}" for name in "abc")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with running(tmp_path_factory.mktemp("service") / "f") as client:
        yield client


@pytest.fixture
def client(service: Client) -> Iterator[Client]:
    """A client of a service without URLs. All tests share the server."""
    yield service
    service.stub.SetActive(m.Active(state=True))
    for crawl in service.stub.ListCrawls(m.Local()).values:
        service.stub.DeleteCrawl(m.DeleteCrawlMessage(value=crawl))


# ---- putting and getting


def test_a_url_is_given_with_its_key_crawl_and_metadata(client: Client) -> None:
    metadata = {"depth": ["1"], "many": ["x", "ü", ""], "none": []}
    assert client.put(new("http://WWW.Example.org/?q=ü", metadata=metadata)) == [OK]
    (found,) = client.get()
    assert (found.url, found.key, found.crawlID) == ("http://WWW.Example.org/?q=ü", "www.example.org", "DEFAULT")
    assert {name: list(texts.values) for name, texts in found.metadata.items()} == metadata


def test_a_known_url_is_skipped_if_it_is_discovered_again(client: Client) -> None:
    assert client.put(new(A), new(B), new(A)) == [OK, OK, SKIPPED]
    assert client.put(new(A)) == [SKIPPED]
    assert client.urls() == [A, B]


def test_a_url_that_is_done_is_never_given_again(client: Client) -> None:
    assert client.put(new(A), new(B)) == [OK, OK]
    assert client.urls(hold_s=1) == [A, B]
    assert client.put(known(A, 0)) == [OK]
    client.skip(1.1)
    assert client.urls() == [B]
    assert client.put(new(A)) == [SKIPPED]  # discovered on another page


def test_a_url_that_waits_is_not_given_once_it_is_done(client: Client) -> None:
    client.put(new(A), new(B), known(A, 0))
    assert client.urls() == [B]


def test_an_update_of_a_url_that_was_never_put_counts_as_known(client: Client) -> None:
    assert client.put(known(A, 0), known(B, 1)) == [OK, OK]
    assert client.put(new(A), new(B)) == [SKIPPED, SKIPPED]
    assert client.urls() == [B]


def test_urls_of_a_queue_come_in_the_order_of_their_dates(client: Client) -> None:
    client.put(known(C, 3), new("http://a.example/new"), known(A, 1), known(B, 2))
    assert client.urls() == [A, B, C, "http://a.example/new"]


def test_a_url_comes_back_at_its_date(client: Client) -> None:
    date = int(client.clock()) + 100
    client.put(known(A, date), known(B, date + 3600))
    client.skip(98)
    assert client.urls() == []
    client.skip(2)
    assert client.urls() == [A]
    client.skip(3600)
    assert client.urls() == [A, B]  # nobody has reported A


def test_an_update_changes_date_and_metadata(client: Client) -> None:
    client.put(new(A, metadata={"old": ["1"]}))
    client.get()
    client.put(known(A, 1, metadata={"new": ["2"]}))
    (found,) = client.get()
    assert {name: list(texts.values) for name, texts in found.metadata.items()} == {"new": ["2"]}
    client.put(known(A, 1))
    assert dict(client.get()[0].metadata) == {}


def test_new_urls_come_in_the_order_of_the_strategy(tmp_path: Path) -> None:
    with running(tmp_path / "f", "quality", quality_key="score") as client:
        client.put(*(new(url, metadata={"score": [score]}) for url, score in ((A, "1"), (B, "3"), (C, "2"))))
        assert client.urls() == [B, C, A]


def test_site_ranks_order_queues(tmp_path: Path) -> None:
    with running(tmp_path / "f", "larger-sites-first") as client:
        client.put(*(new(f"http://s{site}/{page}") for site in (1, 3, 2) for page in range(site)))
        assert [one.key for one in client.get(most=1)] == ["s3", "s2", "s1"]


def test_queues_and_urls_are_limited_as_asked(client: Client) -> None:
    client.put(*(new(f"http://s{site}/{page}") for page in range(3) for site in range(4)))
    assert client.urls(queues=2, most=2) == [f"http://s{site}/{page}" for site in (0, 1) for page in (0, 1)]
    assert [one.key for one in client.get(queues=3, most=1)] == ["s2", "s3", "s0"]  # queues take turns


def test_every_queue_is_given_once_in_however_many_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trapline.urlfrontier.service._ROUND_URLS", 10)
    with running(tmp_path / "f", "larger-sites-first") as client:
        client.put(*(new(f"http://s{site}/{page}") for site in range(60) for page in range(70 - site)))
        keys = [one.key for one in client.get(most=2)]
        assert keys == [f"s{site}" for site in range(60) for _ in range(2)]


def test_one_queue_is_given_if_its_key_is_named(client: Client) -> None:
    client.put(new(A), new("http://b/1"), known(B, 1), new(C, key="other"), new("http://b/2", crawl="two"))
    assert client.urls(key="a.example", crawlID="DEFAULT") == [B, A]
    assert client.urls(key="nowhere") == []
    assert sorted(client.urls(key="b")) == ["http://b/1", "http://b/2"]  # of any crawl
    assert client.urls(key="other", crawlID="") == [C]


def test_the_same_url_may_be_in_several_queues_and_crawls(client: Client) -> None:
    assert client.put(new(A), new(A, key="k"), new(A, crawl="c"), new(A, key="k", crawl="c")) == [OK] * 4
    found = {(one.key, one.crawlID) for one in client.get()}
    assert found == {("a.example", "DEFAULT"), ("k", "DEFAULT"), ("a.example", "c"), ("k", "c")}


def test_crawl_ids_keep_queues_apart(client: Client) -> None:
    client.put(new(A, crawl="one"), new(B, crawl="two"))
    assert client.urls(crawlID="one") == [A]
    assert client.urls(crawlID="DEFAULT") == client.urls(crawlID="three") == []
    assert client.urls(anyCrawlID=m.AnyCrawlID()) == [B]
    assert sorted(client.stub.ListCrawls(m.Local()).values) == ["one", "two"]


def test_any_crawl_gives_each_crawl_its_share(client: Client) -> None:
    client.put(*(new(f"http://s{site}/", crawl=crawl) for crawl in ("one", "two") for site in range(10)))
    assert sorted(one.crawlID for one in client.get(queues=4)) == ["one", "one", "two", "two"]


@pytest.mark.parametrize(
    "bad",
    [
        m.URLItem(),
        new(""),
        new("no host"),
        new("mailto:me@example.org"),
        new("http://a/" + "x" * 2_048),
        new(A, key="k" * 1_025),
        new(A, key="\n"),
        new(A, crawl="c" * 81),
        new(A, crawl="ü" * 41),
        new(A, metadata={"m": ["x" * 70_000]}),
        known(A, 1, key="\x01" + "0"),
    ],
    ids=range(11),
)
def test_what_cannot_be_stored_is_skipped_and_the_stream_goes_on(client: Client, bad: m.URLItem) -> None:
    assert client.put(bad, new(C)) == [SKIPPED, OK]
    assert client.urls() == [C]


def test_huge_numbers_are_accepted(client: Client) -> None:
    most = 2**64 - 1
    assert client.put(known(A, most), new(B)) == [OK, OK]
    assert client.urls(queues=2**32 - 1, most=2**32 - 1, hold_s=2**32 - 1) == [B]
    client.block("a.example", most)
    client.set_delay("a.example", 2**32 - 1)
    client.limit("a.example", 2**32 - 1)
    assert client.status(A).known.refetchable_from_date == 2**42
    assert client.stub.PurgeURLs(m.PurgeUrlParams(days=2**32 - 1)).value == 0
    assert list(client.stub.ListURLs(m.ListUrlParams(start=2**32 - 1, size=2**32 - 1))) == []


def test_outlinks_are_put_by_batch(client: Client) -> None:
    batches = [
        m.DiscoveredBatch(ID="1", items=[info(A), info(B), info(A), info("")]),
        m.DiscoveredBatch(ID="2"),
        m.DiscoveredBatch(ID="3", items=[info(B, crawl="c"), info(B)]),
    ]
    acks = {ack.ID: list(ack.statuses) for ack in client.stub.PutDiscovered(iter(batches))}
    assert acks == {"1": [OK, OK, SKIPPED, SKIPPED], "2": [], "3": [OK, SKIPPED]}


def test_a_stream_of_many_thousands_is_acknowledged_one_by_one(client: Client) -> None:
    count = 4_500  # more than a stream may have pending
    statuses = client.put(*(new(f"http://s{number % 50}/{number}") for number in range(count)))
    assert statuses == [OK] * count and client.stats().size == count


def test_streams_wait_while_too_much_is_not_stored(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little is stored at once, every stream gets its acknowledgements."""
    stored, put = [], PutIntake._put
    monkeypatch.setattr("trapline.urlfrontier.intake._MOST_AT_ONCE", 10)
    monkeypatch.setattr("trapline.urlfrontier.intake._MOST_WAITING_BYTES", 1_000)

    def counted(intake: PutIntake, crawl: str, pages: list[PutPage]) -> list[int]:
        stored.append(len(pages))
        return put(intake, crawl, pages)

    monkeypatch.setattr(PutIntake, "_put", counted)
    with ThreadPoolExecutor() as threads:
        calls = [
            threads.submit(client.put, *(new(f"http://s{stream}/{number}") for number in range(200)))
            for stream in range(3)
        ]
        assert [call.result(20) for call in calls] == [[OK] * 200] * 3
    assert sum(stored) == 600 and max(stored) <= 10


# ---- reservations


def test_a_url_is_not_given_twice_while_it_is_reserved(client: Client) -> None:
    client.put(new(A), new(B))
    assert client.urls(most=1, hold_s=1) == [A]
    assert client.urls(hold_s=60) == [B]  # as another client would
    assert client.urls() == []
    client.skip(1)
    assert client.urls() == [A]


def test_an_update_ends_the_reservation(client: Client) -> None:
    client.put(new(A))
    assert client.urls(hold_s=3600) == [A]
    client.put(known(A, 1))
    assert client.urls() == [A]


def test_a_reservation_that_ends_leaves_the_url_its_date(client: Client) -> None:
    client.put(known(A, 1), known(B, 2), known(C, 3))
    assert client.urls(most=1, hold_s=1) == [A]
    client.skip(1.1)
    assert client.urls() == [A, B, C]


def test_a_client_that_goes_away_releases_nothing(client: Client) -> None:
    client.put(*(new(f"http://s{number}/") for number in range(200)))
    call = client.stub.GetURLs(m.GetParams(delay_requestable=60))
    first = next(iter(call)).url
    call.cancel()
    assert first not in client.urls() and client.stats().inProcess == 200


def test_a_queue_with_enough_reservations_gives_no_more(tmp_path: Path) -> None:
    with running(tmp_path / "f", most_reserved=2) as client:
        client.put(new(A), new(B), new(C), known("http://a.example/d", 1), new("http://b/"))
        assert client.urls(hold_s=60) == ["http://a.example/d", A, "http://b/"]
        assert client.urls() == client.urls(key="a.example") == []
        client.put(known(A, 0))
        assert client.urls(hold_s=3600) == [B]
        client.skip(61)
        assert sorted(client.urls()) == ["http://a.example/d", "http://b/"]


# ---- queues


def test_a_queue_rests_between_two_retrievals(tmp_path: Path) -> None:
    with running(tmp_path / "f", delay_s=5.0) as client:
        client.put(new(A), new(B), known(C, 1))
        assert client.urls(most=1) == [C] and client.urls(most=1) == []
        client.skip(4)
        assert client.urls(most=1) == []
        client.skip(1)
        assert client.urls(most=1) == [A]


def test_a_delay_holds_for_new_urls_and_those_that_are_due(client: Client) -> None:
    client.set_delay("a.example", 3600)
    client.put(new(A), known(B, 1))
    assert client.urls(most=1) == [B]
    assert client.urls() == client.urls(key="a.example") == []


def test_a_longer_delay_counts_from_the_last_retrieval(client: Client) -> None:
    client.put(new(A), new(B))
    assert client.urls(most=1) == [A]
    client.set_delay("a.example", 3600)
    assert client.urls() == []


def test_a_blocked_queue_gives_nothing_until_its_time(client: Client) -> None:
    client.put(new(A), known(B, 1), new("http://b/"))
    client.block("a.example", int(client.clock()) + 100)
    assert client.urls() == ["http://b/"] and client.queues() == ["b"]
    client.skip(98)
    assert client.urls(key="a.example") == []
    client.skip(2)
    assert client.urls(key="a.example", crawlID="") == [B, A]


def test_a_queue_is_unblocked_by_the_time_0(client: Client) -> None:
    client.block("a.example", int(client.clock()) + 3600)
    client.put(new(A))
    assert client.urls() == []
    client.block("a.example", 0)
    assert client.urls() == [A]


def test_a_limit_counts_urls_that_are_done(client: Client) -> None:
    client.limit("a.example", 2)
    client.put(new(A), new(B), new(C), known("http://a.example/d", 1))
    assert len(client.urls(most=2, hold_s=1)) == 2
    client.put(known(A, 0))
    assert client.urls(most=1) == [B]
    client.put(known(B, 0))
    assert client.urls() == [] and client.queues() == []
    client.limit("a.example", 3)
    assert client.urls(most=1) == [C]
    client.limit("a.example", 1)
    client.skip(1.1)
    assert client.urls() == []
    client.limit("a.example", 0)
    assert client.urls() == ["http://a.example/d"]


def test_queues_are_listed_by_page(client: Client) -> None:
    client.put(*(new(f"http://s{number:03}/") for number in range(120)), known("http://done/", 0))
    assert client.queues() == [f"s{number:03}" for number in range(100)]
    assert client.queues(start=115, size=50) == [f"s{number:03}" for number in range(115, 120)]
    listed = client.stub.ListQueues(m.Pagination(start=119, include_inactive=True))
    assert list(listed.values) == ["s119", "done"] and (listed.total, listed.start, listed.size) == (121, 119, 2)
    assert client.queues(crawlID="none") == []


def test_a_deleted_queue_may_be_filled_again(client: Client) -> None:
    client.put(new(A), new(B), known(C, 1), new("http://b/"))
    client.block("a.example", 2**40)
    params = m.QueueWithinCrawlParams(key="a.example")
    assert client.stub.DeleteQueue(params).value == 3 and client.stub.DeleteQueue(params).value == 0
    assert client.queues(include_inactive=True) == ["b"] and client.urls() == ["http://b/"]
    assert client.put(new(A)) == [OK]
    assert client.urls() == [A]


# ---- crawls and the service


def test_a_deleted_crawl_may_be_filled_again(client: Client) -> None:
    client.put(new(A, crawl="../one"), new(B, crawl="../one"), new(C))
    assert client.stub.DeleteCrawl(m.DeleteCrawlMessage(value="../one")).value == 2
    assert client.stub.DeleteCrawl(m.DeleteCrawlMessage(value="../one")).value == 0
    assert list(client.stub.ListCrawls(m.Local()).values) == ["DEFAULT"]
    assert client.put(new(A, crawl="../one")) == [OK]
    assert client.urls(crawlID="../one") == [A]


def test_nothing_is_given_while_the_service_is_not_active(client: Client) -> None:
    client.put(new(A))
    assert client.stub.GetActive(m.Local()).state
    client.stub.SetActive(m.Active(state=False))
    assert client.urls() == [] and not client.stub.GetActive(m.Local()).state
    assert client.put(new(B)) == [OK]
    client.stub.SetActive(m.Active(state=True))
    assert client.urls() == [A, B]


def test_there_is_one_node_and_no_log_level(client: Client) -> None:
    (node,) = client.stub.ListNodes(m.Empty()).values
    assert node.startswith("127.0.0.1:") and not node.endswith(":0")
    with pytest.raises(grpc.RpcError) as caught:
        client.stub.SetLogLevel(m.LogLevelParams())
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("call", ["GetURLs", "ListURLs"])
@pytest.mark.parametrize("what", ["queue", "crawl"])
def test_what_is_deleted_while_urls_are_sent_ends_the_answer(
    client: Client, call: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trapline.urlfrontier.service._READ", 50)
    urls = [f"http://a.example/{number}/{'x' * 1_900}" for number in range(1_000)]  # more than gRPC reads ahead
    client.put(*(known(url, 1) for url in urls))
    params = m.GetParams() if call == "GetURLs" else m.ListUrlParams(size=5_000)
    answers = iter(getattr(client.stub, call)(params, timeout=20))
    first = next(answers)
    if what == "queue":
        client.stub.DeleteQueue(m.QueueWithinCrawlParams(key="a.example"))
    else:
        client.stub.DeleteCrawl(m.DeleteCrawlMessage(value="DEFAULT"))
    found = [one if call == "GetURLs" else one.known.info for one in (first, *answers)]
    assert 0 < len(found) < 1_000
    assert {one.key for one in found} == {"a.example"} and {one.url for one in found} <= set(urls)


# ---- inspection


def test_the_status_of_a_url_is_given_whatever_its_schedule(client: Client) -> None:
    before = int(client.clock())
    client.put(new(A, metadata={"x": ["1"]}), known(B, 0), known(C, 77, key="k", crawl="c"))
    client.get()
    status = client.status(A)
    assert status.known.info.url == A and status.known.info.metadata["x"].values == ["1"]
    assert (
        before <= status.known.refetchable_from_date <= client.clock()
        and before <= status.creation_date <= client.clock()
    )
    assert client.status(B).known.refetchable_from_date == 0
    status = client.status(C, "k", "c")
    assert (status.known.refetchable_from_date, status.known.info.key, status.known.info.crawlID) == (77, "k", "c")
    for missing in (("http://a.example/none", "", ""), (C, "", "c"), (A, "", "none"), ("", "", "")):
        with pytest.raises(grpc.RpcError) as caught:
            client.status(*missing)
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_stats_count_urls_of_a_queue_a_crawl_or_all(client: Client) -> None:
    client.put(new(A), new(B), known(C, 0), new("http://b/"), new("http://c/", crawl="c"))
    client.get(key="a.example", most=1, crawlID="")
    queue, crawl, whole = client.stats("a.example"), client.stats(crawl="DEFAULT"), client.stats()
    assert (queue.size, queue.inProcess, queue.counts["completed"], queue.numberOfQueues) == (2, 1, 1, 1)
    assert (crawl.size, crawl.numberOfQueues, crawl.crawlID) == (3, 2, "DEFAULT")
    assert (whole.size, whole.numberOfQueues) == (4, 3)
    assert client.stats("none").size == client.stats(crawl="none").size == 0


def test_urls_are_listed_and_counted_with_a_filter(client: Client) -> None:
    urls = [f"http://a.example/{'Odd' if number % 2 else 'even'}/{number}" for number in range(10)]
    client.put(*map(new, urls), known("http://b/odd", 0), new(A, crawl="c"))

    def listed(**params: object) -> list[str]:
        return [item.known.info.url for item in client.stub.ListURLs(m.ListUrlParams(**params))]

    def counted(**params: object) -> int:
        return int(client.stub.CountURLs(m.CountUrlParams(**params)).value)

    assert listed() == [*urls, "http://b/odd"] and counted() == 11
    assert listed(key="a.example", start=2, size=3) == urls[2:5] and counted(key="a.example") == 10
    assert listed(filter="odd") == ["http://b/odd"] and counted(filter="odd") == 1
    assert (
        listed(filter="odd", ignoreCase=True, size=2) == [urls[1], urls[3]]
        and counted(filter="ODD", ignoreCase=True) == 6
    )
    assert listed(crawlID="none") == [] and counted(crawlID="none") == counted(key="none") == 0


def test_urls_are_purged_by_their_age(client: Client) -> None:
    client.put(new(A), known(B, 0), known("http://b/", 1))
    assert client.stub.PurgeURLs(m.PurgeUrlParams(days=1)).value == 0
    client.skip(0.01)
    assert client.stub.PurgeURLs(m.PurgeUrlParams(key="a.example", days=0)).value == 2
    assert client.stats().size == 1
    assert client.put(new(A, metadata={"again": ["1"]}), known(B, 1)) == [OK, OK]
    assert sorted(client.urls()) == [A, B, "http://b/"]


# ---- hostile input


def test_a_message_that_is_too_long_ends_its_stream_alone(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        client.put(new(A), new("http://a/" + "x" * (5 << 20)))
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert client.put(new(B)) == [OK]


def test_bytes_that_are_no_message_end_their_stream_alone(client: Client) -> None:
    call = client.channel.stream_stream("/urlfrontier.URLFrontier/PutURLs")
    with pytest.raises(grpc.RpcError) as caught:
        list(call(iter([b"\x0a\xff\xff\xff"])))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert client.put(new(B)) == [OK]


def test_a_call_that_names_no_queue_is_refused(client: Client) -> None:
    for call in (lambda: client.block("", 1), lambda: client.set_delay("\x01", 1), lambda: client.limit("", 1)):
        with pytest.raises(grpc.RpcError) as caught:
            call()
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_one_crawl_too_many_fails(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """SKIPPED would mean that the URL is known."""
    monkeypatch.setattr("trapline.urlfrontier.crawls.MOST_CRAWLS", 1)
    assert client.put(new(A), new(B)) == [OK, OK]
    assert sorted(client.put(new(A, crawl="two"), new(C))) == [OK, FAIL]


def test_a_full_disk_fails_urls_and_loses_none(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    from trapline.durable.database import FrontierDatabase

    client.put(new(A))
    commit = FrontierDatabase.commit

    def full(*arguments: object, **options: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(FrontierDatabase, "commit", full)
    assert client.put(new(B)) == client.put(known(C, 0)) == [FAIL]
    with pytest.raises(grpc.RpcError) as caught:
        client.get()
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    monkeypatch.setattr(FrontierDatabase, "commit", commit)
    assert client.put(new(B), new(C)) == [SKIPPED, OK]  # B is stored now; C was not even noted
    assert sorted(item.known.info.url for item in client.stub.ListURLs(m.ListUrlParams())) == [A, B, C]
