"""The merged database of all partitions, from partitions whose rows the test writes."""

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.crawler.files.layout import FORMAT, new_database
from trapline.crawler.inspect.database_reader import open_database
from trapline.crawler.inspect.summary import abandoned_sites_of
from trapline.frontier import FAILED, FETCHED
from trapline.parallel import CROSS_OVER
from trapline.parallel.folder.folder_status import status_of_folder
from trapline.parallel.folder.link_policy import LinkPolicy
from trapline.parallel.folder.manifest import create
from trapline.parallel.folder.merged import brought_up
from trapline.parallel.partition import Partitioning

SITE = "http://a.test"
FETCH = "insert into fetch (page, visit, address, started, total_s, result, status, error, bytes, mime, marks, found, truncated) values"
OPTIONS = CrawlOptions((f"{SITE}/",), rules=live_rules(ip_delay_s=0.0), own_hosts=("test",))
Abandoned = tuple[float, str]  # when, and its kind


def partition(folder: Path, abandoned: Abandoned | None, fetches: list[tuple[float, int]]) -> None:
    """Write the database of a partition that knows one page of SITE. `fetches`: when each began, and its result; each
    takes two seconds."""
    folder.mkdir()
    with new_database(folder) as database:
        database.execute("insert into meta values ('format', ?), ('created', '1.0')", (str(FORMAT),))
        database.execute("insert into meta values ('options', ?)", (json.dumps(asdict(OPTIONS)),))
        database.execute("insert into site values (0, ?)", (SITE,))
        database.execute("insert into page values (0, 0, ?)", (f"{SITE}/",))
        if abandoned:
            database.execute("insert into abandoned_site values (0, ?, ?, 'why')", abandoned)
        for visit, (at, result) in enumerate(fetches):
            row = (visit, "127.0.0.1", at, 2.0, result, 200, "", 0, "", 0, 0, "")
            database.execute(f"{FETCH} (0, {', '.join('?' * len(row))})", row)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (((10.0, "visits"), []), (None, [(20.0, FETCHED)]), {}),  # another partition fetched it later
        (((10.0, "visits"), []), (None, [(9.0, FETCHED)]), {}),  # that fetch ended later
        (((10.0, "visits"), []), (None, [(5.0, FETCHED)]), {"visits": 1}),
        (((10.0, "visits"), []), (None, [(20.0, FAILED)]), {"visits": 1}),
        (((10.0, "visits"), []), (None, []), {"visits": 1}),
        (
            ((10.0, "visits"), []),
            ((30.0, "dns"), [(20.0, FETCHED)]),
            {"dns": 1},
        ),  # the last word is that it is abandoned
        (((30.0, "dns"), [(20.0, FETCHED)]), ((10.0, "visits"), []), {"dns": 1}),
        (((10.0, "visits"), []), ((12.0, "visits"), []), {"visits": 1}),  # once, although two partitions abandoned it
    ],
)
def test_a_site_is_abandoned_unless_a_partition_fetched_it_afterwards(
    tmp_path: Path,
    one: tuple[Abandoned | None, list[tuple[float, int]]],
    other: tuple[Abandoned | None, list[tuple[float, int]]],
    expected: dict[str, int],
) -> None:
    folder = tmp_path / "c"
    create(folder, OPTIONS, Partitioning("site-hash", 2), LinkPolicy(CROSS_OVER))
    partition(folder / "partition-0", *one)
    partition(folder / "partition-1", *other)
    with closing(open_database(brought_up(folder))) as database:
        assert abandoned_sites_of(database) == expected
    assert status_of_folder(folder).abandoned_sites == expected
