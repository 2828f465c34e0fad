"""The server's log: one row per request, readable while it serves, and as files."""

import csv
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from tests.testweb.webs import SIZE, connect, numbered, one_answer, request, response_to
from trapline.errors import ConfigError
from trapline.testweb import ROBOTS_FILE, Behaviour, RequestLog, build_web, serve
from trapline.testweb.server.log import COLUMNS, write_log


@pytest.fixture(scope="module")
def log() -> RequestLog:
    """Two pages on one connection, then a robots.txt, an unknown path, a wrong host and a page that never comes."""
    web = build_web(numbered(), [Behaviour(), Behaviour(robots="rules"), Behaviour(faults=(("silent", 1.0),))])
    with serve(web) as server:
        web = server.web
        with connect(web, 0) as own:
            for page in (0, 1):
                own.sendall(request(web, page))
                one_answer(own)
        assert len(server.log()) == 2
        with connect(web, 1) as own:
            for target in ("/robots.txt", "/nowhere?x"):
                own.sendall(f"GET {target} HTTP/1.1\r\nHost: site-1.test\r\n\r\n".encode())
                one_answer(own)
        with connect(web, 1) as own:
            own.sendall(b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n")
            one_answer(own)
        with connect(web, 2) as own:
            own.sendall(request(web, 8))
        while len(log := server.log()) != 6 or log.end_s[5] != log.end_s[5]:
            pass
        return log


def test_every_request_has_its_row(log: RequestLog) -> None:
    web = log.web
    assert log.connection.tolist() == [1, 1, 2, 2, 3, 4]
    assert [web.addresses[number] for number in log.address] == ["127.1.0.1"] * 2 + ["127.1.0.2"] * 3 + ["127.1.0.3"]
    assert [log.host(row) for row in range(6)] == ["site-0.test"] * 2 + ["site-1.test"] * 2 + ["b", "site-2.test"]
    assert [log.path(row) for row in range(6)] == ["/", "/p1/1", "/robots.txt", "/nowhere?x", "/a", web.paths[8]]
    assert log.status.tolist() == [200, 200, 200, 404, 421, 0]
    assert log.page.tolist()[:3] == [0, 1, ROBOTS_FILE]
    assert log.size[0] > SIZE and log.size[5] == 0


def test_times_are_in_order(log: RequestLog) -> None:
    assert (log.end_s >= log.arrival_s).all()
    assert (log.arrival_s[1:] >= log.end_s[:-1]).all()  # one after the other, each after the answer before


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_written_files_equal_the_log(log: RequestLog, tmp_path: Path, name: str) -> None:
    write_log(log, tmp_path / name)
    if name.endswith("csv"):
        heading, *rows = list(csv.reader((tmp_path / name).open(newline="")))
        assert [[float(row[1]), row[6], int(row[8])] for row in rows] == [
            [row[1], row[6], row[8]] for row in log.rows()
        ]
    else:
        table = parquet.read_table(tmp_path / name)
        heading = table.column_names
        assert [tuple(row.values()) for row in table.to_pylist()] == list(log.rows())
    assert tuple(heading) == COLUMNS


def test_another_kind_of_file_is_refused(log: RequestLog, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.parquet"):
        write_log(log, tmp_path / "log.txt")


def test_the_log_is_readable_after_the_web_has_ended() -> None:
    with serve(build_web(numbered())) as server:
        response_to(server.web, 0, "Connection: close")
        assert len(server.log()) == 1
