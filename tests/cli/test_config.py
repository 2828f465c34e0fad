"""Options of a crawl in a file: read, refused, printed, and read back."""

import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.crawling import CrawlResult
from tests.crawler.small_server import page, small_server
from tests.effort import slow
from trapline.cli import run
from trapline.cli.crawl.options import SECTIONS
from trapline.cli.options.config_file import quoted
from trapline.cli.options.sections import GUESSED
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.resume import rebuilt


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "crawl.toml"
    file.write_text(text)
    return str(file)


def error_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("trapline: error: ") and said.count("\n") == 1
    return said


def test_a_crawl_by_a_file_alone_and_options_that_come_first(tmp_path: Path) -> None:
    with small_server(lambda host, target: page("/a", "/b", "/c"), ("127.0.0.1",)) as server:
        out = tmp_path / "out"
        text = f"""
            urls = ["http://127.0.0.1:{server.port}/"]
            output = {quoted(str(out))}
            allow_private = true
            delay = "0s"
            pause = 0
            max-pages = 3
            exclude = ['/b$']
            quiet = true
        """
        assert run(["crawl", "--config", written(tmp_path, text), "--max-pages", "2"]) == 0
    assert CrawlResult(out).summary["pages_fetched"] == 2
    assert CrawlResult(out).summary["rejected_links"] == {"exclude": 2}


def test_the_printed_configuration_is_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--delay", "250ms", "--include", r"\.html?$", "--exclude", "it's", "--max-bytes", "20MB", "--insecure"]
    assert run(["config", "http://a.test/", "a.test/b", *given, "-o", str(tmp_path / "x")]) == 0
    first = capsys.readouterr().out
    values = tomllib.loads(first)
    assert values["urls"] == ["http://a.test/", "http://a.test/b"]
    assert (values["delay"], values["include"], values["insecure"]) == ("250ms", [r"\.html?$"], True)
    assert (values["exclude"], values["max-bytes"], values["connections"]) == (["it's"], "20MB", 100)
    assert run(["config", "--config", written(tmp_path, first)]) == 0
    assert capsys.readouterr().out == first


def test_the_configuration_of_a_folder_begins_the_same_crawl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_server(lambda host, target: page("/a", "/b", "/c"), ("127.0.0.1",)) as server:
        options = ["--allow-private", "--delay", "0", "--max-pages", "2", "--strategy", "opic", "--quiet"]
        assert run(["crawl", f"http://127.0.0.1:{server.port}/", *options, "-o", str(tmp_path / "out")]) == 0
        capsys.readouterr()
        assert run(["config", str(tmp_path / "out")]) == 0
        text = capsys.readouterr().out
        assert tomllib.loads(text)["strategy"] == "opic"
        again = ["--config", written(tmp_path, text), "-o", str(tmp_path / "again"), "--quiet"]
        assert run(["crawl", *again]) == 0
    assert CrawlResult(tmp_path / "again").summary["pages_fetched"] == 2


SITES = """
delay = "15s"
ip-delay = "250ms"

[site."a.test"]
delay = "250ms"
max-pages = 2
header = ["X-A: 'b'"]

[site.'*.b.test']
exclude = ['\\?']
blocked = true
"""


def test_settings_of_sites_are_printed_and_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "http://a.test/", "--config", written(tmp_path, SITES)]) == 0
    first = capsys.readouterr().out
    tables = tomllib.loads(first)["site"]
    assert tables["a.test"] == {"delay": 0.25, "max-pages": 2, "header": ["X-A: 'b'"]}
    assert tables["*.b.test"] == {"exclude": [r"\?"], "blocked": True}
    assert run(["config", "--config", written(tmp_path, first)]) == 0
    assert capsys.readouterr().out == first


def test_a_site_has_its_settings_in_a_crawl_and_after_a_resume(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with small_server(lambda host, target: page(*(f"/{n}" for n in range(9))), ("127.0.0.1",)) as server:
        tables = "[site.'127.0.0.1']\nmax-pages = 4\nheader = 'X-A: b'\nexclude = '/3'\n"
        text = f"allow-private = true\ndelay = 0\nmax-pages = 2\nsitemaps = false\nquiet = true\n{tables}"
        file = written(tmp_path, text)
        assert run(["crawl", f"http://127.0.0.1:{server.port}/", "--config", file, "-o", str(out)]) == 0
        assert run(["crawl", "--resume", str(out), "--max-pages", "9", "--quiet"]) == 0
        assert all(one.header("X-A") == "b" for one in server.log) and "/3" not in server.targets("127.0.0.1")
    assert CrawlResult(out).summary["pages_fetched"] == 4
    assert run(["config", str(out)]) == 0
    assert tomllib.loads(capsys.readouterr().out)["site"]["127.0.0.1"]["max-pages"] == 4


def test_a_resumed_crawl_may_have_other_settings_of_sites(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with small_server(lambda host, target: page(*(f"/{n}" for n in range(9))), ("127.0.0.1",)) as server:
        text = "allow-private = true\ndelay = 0\nsitemaps = false\n[site.'127.0.0.1']\nmax-pages = 4\nexclude = '/3'\n"
        config = written(tmp_path, text)
        assert run(["crawl", f"http://127.0.0.1:{server.port}/", "--config", config, "--quiet", "-o", str(out)]) == 0
        assert CrawlResult(out).summary["pages_fetched"] == 4 and "/3" not in server.targets("127.0.0.1")
        del server.log[:]
        config = written(
            tmp_path, "[site.'127.0.0.1']\ndelay = 0.3\nper-connection = 2\nmax-pages = 8\nheader = 'X-A: c'\n"
        )
        assert run(["crawl", "--resume", str(out), "--config", config, "--quiet"]) == 0
        assert {one.header("X-A") for one in server.log} == {"c"} and len(server.log) == 4
    summary = CrawlResult(out).summary
    assert (summary["pages_fetched"], summary["politeness_violations"]) == (8, 0)
    with closing(Reading(out)) as reading:
        frontier = rebuilt(reading)[0]
    assert (frontier.site_rules(0), frontier.site_budgets.tolist()) == ((0.3, 2), [8])


@slow
def test_a_resume_blocks_and_unblocks_sites_as_their_settings_say(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with small_server(lambda host, target: page(*(f"/{n}" for n in range(9))), ("127.0.0.1",)) as server:
        common = ["--allow-private", "--delay", "0", "--no-sitemaps", "--max-pages", "3", "--quiet"]
        assert run(["crawl", f"http://127.0.0.1:{server.port}/", *common, "-o", str(out)]) == 0
        again = ["crawl", "--resume", str(out), "--quiet", "--max-pages", "9", "--config"]
        for table, kinds, pages in (("blocked = true", {"blocked": 1}, 3), ("max-pages = 8", {}, 8)):
            assert run([*again, written(tmp_path, f"[site.'127.0.0.1']\n{table}\n")]) == 0
            summary = CrawlResult(out).summary
            assert (summary["abandoned_sites_by_kind"], summary["pages_fetched"]) == (kinds, pages)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[site.'a.test']\nblocked = 1", 'crawl.toml: [site."a.test"]: blocked is 1; give true or false'),
        ("[site.'a.test']\ndealy = 1", "there is no setting 'dealy'; did you mean 'delay'?"),
        ("[site.'a.test']\ndelay = 'soon'", "'soon' is not a number of seconds"),
        ("[site.'a.test']\npassword = 'x'", "put it into a file for --credentials FILE"),
        ("[site]\ndelay = 3", "not a table; write its settings in lines below it"),
        ("no-robots = true", "name these hosts with --own-hosts HOST"),
        ("no-robots = true\nown-hosts = ['b.test']", "fetches from the hosts of --own-hosts only"),
        ("header = ['Authorization: x']", "put it into a file for --credentials FILE"),
        ("proxy = 'http://a:b@c'", "put user and password into [proxy] of --credentials FILE"),
        ("proxy-names = true", "--proxy-names has no effect without a proxy"),
        ("max-page = 3", "there is no option 'max-page'; did you mean 'max-pages'?"),
        ("config = 'x'", "there is no option 'config'"),
        ("[crawl]\ndelay = 3", "[crawl]: options must not be in a table; remove this line"),
        ("delay = [1]", "delay is [1]; write a number or a text in quotes"),
        ("delay = 'soon'", "crawl.toml: delay: 'soon' is not a number of seconds"),
        (
            "seeds = ['http://a.test/']",
            "crawl.toml: seeds must be the name of a file with one URL per line; to list the URLs here, write urls = [...]",
        ),
        ("seeds = 'http://a.test/'", "crawl.toml: seeds must be the name of a file"),
        ("seeds = 'no-such-file'", "crawl.toml: seeds: File 'no-such-file' does not exist"),
        ("connections = 1.5", "connections: '1.5' is not a whole number"),
        ("insecure = 'yes'", "insecure is 'yes'; write true or false"),
        ("delay = ", "cannot be read as TOML"),
        ("refresh-share = 0.1", "--refresh-share has no effect without refreshing"),
    ],
)
def test_mistakes_in_a_file_are_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    assert said in error_of(capsys, "crawl", "http://a.test/", "--config", written(tmp_path, text), "-o", "x")


def test_options_that_people_guess_lead_to_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    known = {flag for section in SECTIONS for flag in section.flags}
    for guessed, meant in GUESSED.items():
        assert guessed not in known and meant.split()[0] in known
        assert f"there is no option {guessed}; use {meant}" in error_of(capsys, "crawl", "http://a.test/", guessed, "1")
