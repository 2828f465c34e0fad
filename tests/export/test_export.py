"""`trapline export`: each table in each format, complete or not at all, and whatever the archives hold."""

import csv
import json
import os
import sqlite3
import subprocess
import sys
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest

from tests.effort import slow
from tests.export.written_crawl import WrittenCrawl
from trapline.cli import run
from trapline.cli.crawl import export_command
from trapline.crawler.engine.options import live_rules
from trapline.crawler.inspect.database_reader import open_database
from trapline.crawler.inspect.page_history import Target, site_account
from trapline.crawler.inspect.summary import totals_of
from trapline.export.archive_tables import REQUISITE, _Reasons
from trapline.export.database_tables import _PAGES
from trapline.export.files import FORMATS, _Shown
from trapline.export.source import ExportSource
from trapline.export.tables import TABLES
from trapline.graph.formats.textfile import LoadOptions
from trapline.graph.load import load_graph
from trapline.parallel import EXCHANGE
from trapline.parallel.folder.link_policy import LinkPolicy
from trapline.parallel.folder.manifest import create
from trapline.parallel.partition import Partitioning

A, B = "http://a.test", "http://b.test"
Captured = pytest.CaptureFixture[str]
Row = dict[str, Any]
HOME = b"""<title>Home, sweet &quot;home&quot;</title><p>One, "two"</p><p>three</p>
<a href=/x rel="next">the <b>x</b></a><a href=/gone>old</a><a href=/private>p</a><a href=//b.test/>b</a><a href=mailto:m>m</a>"""


def small() -> WrittenCrawl:
    crawl = WrittenCrawl(f"{A}/")
    crawl.robots(A, b"User-agent: *\nDisallow: /private\n")
    crawl.fetched(f"{A}/", HOME, [f"{A}/x", f"{A}/gone", f"{A}/private"])
    crawl.fetched(f"{A}/x", b"", [f"{A}/"], "Location: /\r\nContent-Type: text/html", status=301)
    crawl.refused(f"{A}/gone", 404)
    crawl.forbidden(f"{A}/private")
    crawl.failed(f"{A}/down", "timeout")
    crawl.page(f"{A}/waiting")
    crawl.requisite(f"{A}/i.png", needed_by=f"{A}/")
    return crawl


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small().write(tmp_path / "c")


def exported(folder: Path, *args: str, code: int = 0) -> Path:
    """Export into a new folder, and return it."""
    out = folder.parent / f"out{len(list(folder.parent.iterdir()))}"
    assert run(["export", str(folder), *args, "-o", str(out), "--quiet"]) == code
    return out


def rows(folder: Path, table: str, code: int = 0) -> list[Row]:
    file = exported(folder, table, code=code) / f"{table}.parquet"
    found: list[Row] = pyarrow.parquet.read_table(file).to_pylist()
    return found


# ---- the tables


def test_pages_have_the_state_and_the_last_fetch_of_each_known_url(folder: Path) -> None:
    found = {row["url"].removeprefix(A): row for row in rows(folder, "pages")}
    assert {url: (row["state"], row["status"], row["error"]) for url, row in found.items()} == {
        "/": ("fetched", 200, None),
        "/x": ("redirect", 301, None),
        "/gone": ("refused", 404, "http"),
        "/private": ("forbidden", None, "robots"),
        "/down": ("failed", None, "timeout"),
        "/waiting": ("waiting", None, None),
    }
    home = found["/"]
    assert (home["site"], home["bytes"], home["mime"], home["nofollow"]) == (A, len(HOME), "text/html", False)
    assert home["fetched_at"].isoformat() == "2023-11-14T22:13:20+00:00"
    assert home["digest"].startswith("sha1:") and found["/waiting"]["fetched_at"] is None


def test_a_page_that_has_not_changed_keeps_the_type_and_digest_of_its_contents(tmp_path: Path) -> None:
    crawl = WrittenCrawl(f"{A}/")
    crawl.fetched(f"{A}/", HOME, [f"{A}/x"], fingerprint=b"f" * 8)
    crawl.fetched(f"{A}/", head="", status=304, mime="", changed=0, fingerprint=b"f" * 8)
    folder = crawl.write(tmp_path / "c")
    home = rows(folder, "pages")[0]
    assert (home["status"], home["mime"], home["bytes"]) == (304, "text/html", len(HOME))
    assert [row["title"] for row in rows(folder, "text")] == ['Home, sweet "home"']
    assert len(rows(folder, "fetches")) == 2


def test_every_reader_tells_sitemaps_and_requisites_from_pages(tmp_path: Path) -> None:
    crawl = small()
    crawl.sitemap(f"{A}/map.xml")
    crawl.requisite(f"{A}/map.xml", needed_by=f"{A}/")
    folder = crawl.write(tmp_path / "c")
    assert not {f"{A}/map.xml", f"{A}/i.png"} & {row["url"] for row in rows(folder, "pages")}
    assert (len(rows(folder, "pages")), rows(folder, "sites")[0]["pages_known"]) == (6, 6)
    assert load_graph(folder, LoadOptions(dangling=True)).pages == 6
    with closing(open_database(folder)) as database:
        assert totals_of(database)["urls_known"] == 6
        assert site_account(database, Target(0, None, A)).known == 6


def test_fetches_name_the_record_in_the_archive(folder: Path) -> None:
    found = rows(folder, "fetches")
    assert [row["result"] for row in found] == ["fetched", "redirect", "refused", "forbidden", "failed", "requisite"]
    first = found[0]
    assert (first["url"], first["address"], first["links"], first["warc"]) == (
        f"{A}/",
        "192.0.2.7",
        3,
        "trapline-00000.warc.gz",
    )
    archive = (folder / "warc" / first["warc"]).read_bytes()
    assert archive[first["warc_offset"] :][:2] == b"\x1f\x8b" and first["warc_length"] > 100
    assert found[3]["address"] is None and found[4]["first_byte_s"] is None


def test_sites_have_the_numbers_of_their_pages(folder: Path) -> None:
    (site,) = rows(folder, "sites")
    assert (site["origin"], site["pages_known"], site["pages_fetched"]) == (A, 6, 1)
    assert (site["pages_failed"], site["pages_forbidden"], site["robots_status"], site["abandoned"]) == (
        2,
        1,
        200,
        None,
    )


def test_links_have_anchor_text_and_say_why_they_are_not_followed(folder: Path) -> None:
    found = [
        (row["target"], row["text"], row["rel"], row["followed"], row["reason"], row["target_status"])
        for row in rows(folder, "links")
    ]
    assert found == [
        (f"{A}/x", "the x", "next", True, None, 301),
        (f"{A}/gone", "old", None, True, None, 404),
        (f"{A}/private", "p", None, False, "robots", None),
        (f"{B}/", "b", None, False, "host", None),
        (None, "m", None, False, "no url", None),
        (f"{A}/", "", None, True, None, 200),  # the redirect
    ]


def test_memory_does_not_grow_with_the_requisites(folder: Path) -> None:
    numbers = "with recursive n(id) as (select 100 union all select id + 1 from n where id < 20099)"
    with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
        database.execute(f"insert into page {numbers} select id, 0, '{A}/some/image/' || id || '.png' from n")
        database.execute(f"insert into requisite {numbers} select id, 'image', 0, 0, 1, 'fetched' from n")
    with closing(ExportSource(folder)) as source:
        tracemalloc.start()
        reasons = _Reasons(source)
        assert reasons.why_not(f"{A}/some/image/20099.png", None) == REQUISITE
        assert reasons.why_not(f"{B}/20099.png", None) == "host"
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 500_000, "their URLs alone have 700,000 bytes"


def test_a_piece_of_the_pages_does_not_read_all_requisites(folder: Path) -> None:
    """Steps of the database for the same pages, with the requisites before and after many more."""
    numbers = "with recursive n(id) as (select 100 union all select id + 1 from n where id < 20099)"
    steps = []
    for _ in range(2):
        with closing(ExportSource(folder)) as source:
            source.need("last_fetch", "extra_page")
            source.database.set_progress_handler(lambda: steps.append(1) or 0, 100)
            assert len(source.database.execute(f"{_PAGES} limit 4096", (-1, 99)).fetchall()) == 6
            source.database.set_progress_handler(None, 0)
        steps.append(0)
        with closing(sqlite3.connect(folder / "crawl.db")) as database, database:
            database.execute(f"insert or ignore into page {numbers} select id, 0, '{A}/' || id || '.png' from n")
            database.execute(f"insert or ignore into requisite {numbers} select id, 'image', 0, 0, 1, 'fetched' from n")
    assert steps.count(1) < 100, "20,000 requisites take many thousand steps"


def test_links_of_a_header_and_of_a_page_that_forbids_to_follow_them(tmp_path: Path) -> None:
    crawl = WrittenCrawl(f"{A}/")
    crawl.fetched(f"{A}/", b"<a href=/1>", [f"{A}/1", f"{A}/2"], "Link: </2>; rel=next\r\nContent-Type: text/html")
    crawl.fetched(
        f"{A}/1", b"<a href=/3><a href=/4 rel=nofollow>", head="X-Robots-Tag: nofollow\r\nContent-Type: text/html"
    )
    crawl.fetched(f"{A}/2", b"<meta name=robots content=nofollow><a href=/5>")
    found = [(row["href"], row["element"], row["reason"]) for row in rows(crawl.write(tmp_path / "c"), "links")]
    assert found == [
        ("/1", "a", None),
        ("/2", "header", None),
        ("/3", "a", "page nofollow"),
        ("/4", "a", "nofollow"),
        ("/5", "a", "page nofollow"),
    ]


def test_text_is_what_a_reader_sees(folder: Path) -> None:
    (home,) = rows(folder, "text")
    assert (home["title"], home["text"]) == ('Home, sweet "home"', 'One, "two"\nthree\nthe xoldpbm')


def test_text_of_any_encoding_and_coding(tmp_path: Path) -> None:
    import gzip

    crawl = WrittenCrawl(f"{A}/")
    crawl.fetched(f"{A}/1", "<p>é".encode("latin-1"), head="Content-Type: text/html; charset=iso-8859-1")
    crawl.fetched(f"{A}/2", gzip.compress(b"<p>coded"), head="Content-Encoding: gzip\r\nContent-Type: text/html")
    crawl.fetched(
        f"{A}/3",
        b"chunked",
        head="Transfer-Encoding: chunked\r\nContent-Type: text/html",
        wire=b"7\r\nchunked\r\n0\r\n\r\n",
    )
    crawl.fetched(f"{A}/4", gzip.compress(b"a\r\nb"), head="Content-Encoding: gzip\r\nContent-Type: text/plain")
    crawl.fetched(f"{A}/5", "\ufeff<p>wide".encode("utf-16-le"))
    crawl.fetched(f"{A}/6", b"<p>cut", head="Content-Length: 900\r\nContent-Type: text/html", truncated="length")
    crawl.fetched(f"{A}/7", b"<p>\xff\xfe\x00 \xc3", head="Content-Type: text/html; charset=utf-8")
    crawl.fetched(f"{A}/8", b"GIF89a", head="Content-Type: image/gif")
    crawl.fetched(f"{A}/9", b"no gzip", head="Content-Encoding: gzip\r\nContent-Type: text/html", error="encoding")
    crawl.fetched(f"{A}/10", b"<p>no type", head="X: y")
    found = [(row["url"][-2:], row["text"]) for row in rows(crawl.write(tmp_path / "c"), "text")]
    assert found == [
        *(("/1", "é"), ("/2", "coded"), ("/3", "chunked"), ("/4", "a\nb"), ("/5", "wide"), ("/6", "cut")),
        *(("/7", "\ufffd\ufffd \ufffd"), ("10", "no type")),
    ]


def test_a_repeated_body_is_read_from_the_record_of_the_first_page_or_robots_txt(tmp_path: Path) -> None:
    crawl = WrittenCrawl(f"{A}/")
    page, catch_all = b"<p>same<a href=/3>" + b" " * 2000, b"<p>soft 404" + b" " * 2000
    crawl.robots(A, catch_all)
    crawl.fetched(
        f"{A}/1",
        page,
        [f"{A}/3"],
        "Transfer-Encoding: chunked\r\nContent-Type: text/html",
        wire=b"%x\r\n%b\r\n0\r\n\r\n" % (len(page), page),
    )
    crawl.fetched(f"{A}/2", page, [f"{A}/3"])
    crawl.fetched(f"{A}/3", catch_all)
    folder = crawl.write(tmp_path / "c")
    assert b"warc/revisit" in (folder / "index.cdxj").read_bytes()
    assert [row["text"] for row in rows(folder, "text")] == ["same", "same", "soft 404"]
    assert [row["source"][-1] for row in rows(folder, "links")] == ["1", "2"]


# ---- damaged archives


@pytest.mark.parametrize("damage", ["missing", "cut off", "overwritten"])
def test_records_that_cannot_be_read_are_counted_and_their_links_come_from_the_database(
    tmp_path: Path, capsys: Captured, damage: str
) -> None:
    crawl = WrittenCrawl(f"{A}/")
    crawl.fetched(f"{A}/1", b"<p>one<a href=/3>x", [f"{A}/3"])
    crawl.fetched(f"{A}/2", b"<p>two<a href=/3>x" + os.urandom(4000).hex().encode(), [f"{A}/3"])
    folder = crawl.write(tmp_path / "c", {"warc_bytes": 1})  # one record per archive
    archive = folder / "warc" / "trapline-00001.warc.gz"
    if damage == "missing":
        archive.unlink()
    else:
        data = archive.read_bytes()
        archive.write_bytes(data[:-1500] if damage == "cut off" else data[:1000] + b"?" * 50 + data[1050:])
    assert [row["text"] for row in rows(folder, "text", code=1)] == ["onex"]
    said = capsys.readouterr().err
    assert "the records of 1 page cannot be read" in said and str(archive) in said and "trapline verify" in said
    assert [
        (row["source"][-1], row["target"][-1], row["text"], row["followed"]) for row in rows(folder, "links", code=1)
    ] == [
        ("1", "3", "x", True),
        ("2", "3", None, True),
    ]


# ---- formats and files


@pytest.mark.parametrize("table", TABLES)
def test_all_formats_have_the_same_rows(folder: Path, table: str) -> None:
    parquet, csv_file, lines = (exported(folder, table, "--to", one) / f"{table}.{one}" for one in FORMATS)
    expected = pyarrow.parquet.read_table(parquet)
    assert expected.num_rows > 0 and expected.schema.names == list(TABLES[table].columns)
    types = pyarrow.csv.ConvertOptions(
        column_types=expected.schema, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    multiline = pyarrow.csv.ParseOptions(newlines_in_values=True)
    assert pyarrow.csv.read_csv(csv_file, convert_options=types, parse_options=multiline).equals(expected)
    read = [json.loads(line) for line in lines.read_text().splitlines()]
    as_json = json.loads(json.dumps(expected.to_pylist(), default=lambda moment: moment.isoformat()))
    assert read == as_json


HOSTILE = '"quoted", a\rb\tc; =1+1 \u202e \x1b[2J \u2028 \U0001f600 \ufffd'


def test_hostile_text_is_quoted_and_survives(tmp_path: Path) -> None:
    crawl = WrittenCrawl(f"{A}/")
    body = f"<title>{HOSTILE}</title><a href='\"&#13;&#10;,x' rel='\"a,b\"'>{HOSTILE}</a>\0".encode()
    crawl.fetched(f"{A}/", body, head="Content-Type: text/html; charset=utf-8")
    folder = crawl.write(tmp_path / "c")
    shown = HOSTILE.replace("\r", " ").replace("\t", " ").replace(" \u2028 ", " ")
    for table, column in (("text", "title"), ("links", "text")):
        (row,) = rows(folder, table)
        assert row[column] == shown
        out = exported(folder, table, "--to", "csv")
        with (out / f"{table}.csv").open(newline="") as file:
            (plain,) = csv.DictReader(file)
        assert plain[column] == shown and list(plain) == list(TABLES[table].columns)
        if table == "links":
            assert plain["href"] == '"\r\n,x' and plain["rel"] == '"a,b"'


def test_a_terminal_gets_no_control_characters() -> None:
    said: list[str] = []
    with _Shown(said.append) as shown:
        shown.write(b"one\ntw")
        shown.write(b"o\nthree")
    assert said == ["one", "two", "three"]  # terminal.say_text escapes them


def test_part_files_hold_a_bounded_number_of_rows(folder: Path) -> None:
    out = exported(folder, "pages", "links", "--to", "jsonl", "--rows-per-file", "4")
    parts = {path.name: len(path.read_text().splitlines()) for path in sorted((out / "pages").iterdir())}
    assert parts == {"part-00000.jsonl": 4, "part-00001.jsonl": 2}
    assert sorted(path.name for path in out.iterdir()) == ["links", "pages"]


def test_a_table_without_rows_is_a_file_with_columns(tmp_path: Path) -> None:
    crawl = WrittenCrawl(f"{A}/")
    crawl.failed(f"{A}/", "connect")
    folder = crawl.write(tmp_path / "c")
    assert rows(folder, "text") == []
    assert [path.name for path in (exported(folder, "links", "--rows-per-file", "5") / "links").iterdir()] == [
        "part-00000.parquet"
    ]
    assert (exported(folder, "text", "--to", "csv") / "text.csv").read_text().startswith('"page_id","url"')


def test_one_table_goes_to_stdout(folder: Path, capfd: Captured) -> None:
    assert run(["export", str(folder), "sites", "--to", "jsonl", "-o", "-"]) == 0
    assert json.loads(capfd.readouterr().out)["origin"] == A


def test_without_tables_all_are_written_into_the_folder_of_the_crawl(folder: Path, capsys: Captured) -> None:
    assert run(["export", str(folder)]) == 0
    assert sorted(path.name for path in (folder / "export").iterdir()) == sorted(f"{table}.parquet" for table in TABLES)
    assert f"wrote {folder}/export/pages.parquet: 6 rows" in capsys.readouterr().err
    assert tuple(TABLES) == export_command.TABLES and FORMATS == export_command.FORMATS


def test_an_earlier_export_is_replaced_only_if_the_user_says_so(folder: Path, capsys: Captured) -> None:
    out = folder.parent / "out"
    command = ["export", str(folder), "sites", "--to", "csv", "-o", str(out)]
    assert run(command) == 0
    assert run([*command, "--rows-per-file", "1"]) == 2
    assert "give --overwrite to replace it" in capsys.readouterr().err
    assert run([*command, "--rows-per-file", "1", "--overwrite"]) == 0
    assert [path.name for path in out.iterdir()] == ["sites"]
    assert run([*command, "--overwrite"]) == 0
    assert [path.name for path in out.iterdir()] == ["sites.csv"]
    (out / "sites").mkdir()
    (out / "sites" / "mine").touch()
    assert run([*command, "--overwrite", "--rows-per-file", "1"]) == 2
    assert "holds other files (mine)" in capsys.readouterr().err and (out / "sites" / "mine").exists()


def test_a_failed_export_leaves_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trapline.export import files

    def fail(rows: Any, schema: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_batch", fail)
    out = folder.parent / "out"
    for more in ([], ["--rows-per-file", "2"]):
        assert run(["export", str(folder), "pages", "-o", str(out), *more]) == 2
        assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["{0}/nothing"], "name the folder of a crawl"),
        (["{0}", "-o", "-"], "`-o -` writes only one table"),
        (["{0}", "pages", "-o", "-"], "give --to csv or --to jsonl"),
        (["{0}", "pages", "-o", "-", "--to", "csv", "--rows-per-file", "2"], "omit --rows-per-file"),
        (["{0}", "-o", "{0}/no/such"], "there is no folder"),
        (["{0}", "-o", "{0}/crawl.db"], "is not a folder"),
        (["{0}", "page"], "'page' is not one of"),
        (["{0}", "--rows-per-file", "0"], "--rows-per-file"),
    ],
)  # fmt: skip
def test_invalid_input_is_reported_in_one_line(folder: Path, capsys: Captured, args: list[str], says: str) -> None:
    assert run(["export", *(arg.format(folder) for arg in args)]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


# ---- running and parallel crawls


def test_a_running_crawl_is_exported_as_of_one_moment(folder: Path) -> None:
    """Rows that are committed after the export began do not belong to it, although other rows are read later."""
    from trapline.export.source import ExportSource

    with closing(ExportSource(folder)) as source, closing(sqlite3.connect(folder / "crawl.db")) as store:
        store.execute("insert into page values (7, 0, 'http://a.test/later')")
        store.execute(
            "insert into fetch (page, visit, address, started, total_s, result, status, error, bytes, mime, marks, found, truncated, links)"
            " values (5, 9, '', 0, 0, 3, 200, '', 0, '', 0, 0, '', x'')"
        )
        store.commit()
        pages = list(TABLES["pages"].rows(source))
        assert [row[0] for row in pages] == [0, 1, 2, 3, 4, 5] and pages[5][3] == "waiting"
        assert len(list(TABLES["fetches"].rows(source))) == 6
        assert len(list(TABLES["text"].rows(source))) == 1


def test_the_partitions_of_a_crawl_are_exported_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    one, other = (WrittenCrawl(f"{A}/", f"{B}/", rules=live_rules(ip_delay_s=0.0)) for _ in range(2))
    page = b"<a href=//b.test/>to b</a><a href=//b.test/dropped>x</a>"
    one.fetched(f"{A}/", page, elsewhere=(f"{B}/", f"{B}/dropped"))
    other.fetched(f"{B}/", b"<title>B</title>")
    create(folder, one.options, Partitioning("site-hash", 2), LinkPolicy(EXCHANGE))
    for number, crawl in enumerate((one, other)):
        crawl.write(folder / f"partition-{number}")
    found = [(row["source"], row["target"], row["text"], row["reason"]) for row in rows(folder, "links")]
    assert found == [(f"{A}/", f"{B}/", "to b", None), (f"{A}/", f"{B}/dropped", "x", "other partition")]
    assert [row["title"] for row in rows(folder, "text")] == [None, "B"]
    assert [row["origin"] for row in rows(folder, "sites")] == [A, B]
    assert [row["warc"] for row in rows(folder, "fetches")] == [
        f"partition-{n}/warc/trapline-00000.warc.gz" for n in (0, 1)
    ]


# ---- compilation

_READY_AFTER = """
import sys
from trapline.cli import run
from trapline.compiled import jit

asked, real = [], jit.ready
jit.ready = lambda *kernels, **how: asked.append(how.get("within")) or real(*kernels, **how)
assert run(sys.argv[1:]) == 0
print(len(asked), *sorted(kernel.py_func.__name__ for kernel in jit._kernels if kernel not in jit._unready))
"""
_OF_REPORT = (
    "_choose_homes _count _drop_parallel _pass _scatter _split _split_urls _turn_round _walk inversions mark_early"
)


@slow
@pytest.mark.parametrize(
    ("words", "kernels"), [("export DIR --quiet", "find_tags"), ("report DIR -o page.html", _OF_REPORT)]
)
def test_a_command_prepares_only_the_kernels_that_it_calls(
    words: str, kernels: str, folder: Path, tmp_path: Path
) -> None:
    """Nothing is left to a first call, and nothing of the frontier or of the generator of graphs is compiled."""
    command = [sys.executable, "-c", _READY_AFTER, *words.replace("DIR", str(folder)).split()]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.stdout.split() == ["1", *kernels.split()]
