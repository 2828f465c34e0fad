"""`trapline testweb`: its output, its files, and its end."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.testweb.webs import numbered, response_to
from trapline.cli import run
from trapline.graph import save
from trapline.testweb import build_web

TRAPLINE = [sys.executable, "-c", "from trapline.cli import main; main()", "testweb"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graph") / "web"
    save(numbered(), folder)
    return folder


def started(*args: object) -> "subprocess.Popen[str]":
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*TRAPLINE, *map(str, args)], text=True, **pipes)  # type: ignore[call-overload]


def test_json_output_has_the_addresses_first_and_then_the_results(graph: Path, tmp_path: Path) -> None:
    hosts, urls, log = tmp_path / "hosts", tmp_path / "urls", tmp_path / "log.csv"
    files = ("--hosts-file", hosts, "--urls-file", urls, "--log", log)
    process = started(graph, "--json", *files, "--faults", "error=100%", "--disallow", "50%")
    where = json.loads(process.stdout.readline())
    web = build_web(numbered()).at(where["port"])
    assert (where["sites"], where["pages"], where["hosts_file"]) == (3, 12, str(hosts))
    assert hosts.read_text().splitlines() == [f"{address} {name}" for name, address in web.hosts.items()]
    assert urls.read_text().splitlines() == web.seed_urls
    assert response_to(web, 0, "Connection: close").startswith(b"HTTP/1.1 500 ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0 and err == f"wrote {log}\n"
    what = json.loads(out)
    assert (what["requests"], what["connections"], what["statuses"]) == (1, 1, {"500": 1})
    assert len(log.read_text().splitlines()) == 2


def test_servers_of_a_model_are_those_of_the_simulator(graph: Path, tmp_path: Path) -> None:
    file = tmp_path / "slow.toml"
    file.write_text('based_on = "constant"\nthink_median_s = 0.3\nrefused = 1.0\n')
    process = started(graph, "--json", "--servers", file, "--faults", "model")
    web = build_web(numbered()).at(json.loads(process.stdout.readline())["port"])
    began = time.monotonic()
    assert response_to(web, 0, "Connection: close").startswith(b"HTTP/1.1 404 ")
    assert time.monotonic() - began >= 0.3
    process.terminate()
    process.communicate(timeout=20)


def test_text_output_shows_how_to_crawl_the_web(graph: Path) -> None:
    process = started(graph, "--names", "address", "--requests", "measured")
    lines = [process.stdout.readline() for _ in range(4)]
    assert "3 sites with 12 pages" in lines[0] and "http://127.1.0.1:" in lines[0]
    assert lines[2].startswith("crawl it:  trapline crawl --seeds ") and "--hosts" not in lines[2]
    assert "--continuous" not in lines[2]
    urls = Path(lines[2].split("--seeds ")[1].split()[0])
    assert len(urls.read_text().splitlines()) == 3
    process.terminate()
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0 and out.startswith("served 0 requests") and err == ""
    assert not urls.exists()


def test_the_output_counts_sites_by_level(graph: Path) -> None:
    process = started(graph, "--changes", "poisson:1h", "--providers", "smart=67%,liar=33%")
    lines = [process.stdout.readline() for _ in range(5)]
    process.terminate()
    process.communicate(timeout=20)
    assert lines[1] == "sites by provider level: 2 smart, 1 liar\n"
    assert lines[4].startswith("crawl it:  ") and " --continuous -o DIR" in lines[4]


def test_a_changing_web_writes_the_files_from_which_freshness_is_measured(
    graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, history = tmp_path / "log.parquet", tmp_path / "history.csv"
    process = started(graph, "--json", "--log", log, "--history", history, "--changes", "poisson:1h", "--noise")
    web = build_web(numbered()).at(json.loads(process.stdout.readline())["port"])
    for page in range(11):
        assert b"ETag: W/" in response_to(web, page, "Connection: close")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert run(["testweb", "freshness", str(log), str(history), "--zipf", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # The last access ends it
    assert found["freshness"]["all"]["pages"] == 12 and found["freshness"]["all"]["fetched"] == 10
    assert 0.0 < found["freshness"]["all"]["binary"] < 1.0 == found["freshness"]["all"]["binary_of_copies"]
    assert run(["testweb", "freshness", str(log), str(history)]) == 0
    assert "12 pages: 0 updates and 10 fetches" in capsys.readouterr().out
    log.with_suffix(".csv").write_text("arrived,arrival_s,end_s,host,path,status,version\n")
    assert run(["testweb", "freshness", str(log.with_suffix(".csv")), str(history)]) == 2
    assert "contains no fetch of a page of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["--noise"], "--changes"),
        (["--providers", "smart"], "--changes"),
        (["--changes", "poisson:1h", "--ping", "http://127.0.0.1/"], "--providers"),
        (["--changes", "poisson:1h", "--providers", "clever"], "no level 'clever'"),
        (["--changes", "poisson:1h", "--providers", "smart", "--ping", "http://example.org/"], "on this machine"),
        (
            ["--changes", "poisson:1h", "--providers", "smart", "--ping", "http://127.0.0.1/", "--ping-precision", "0"],
            "precision is 0",
        ),
        (["--changes", "poisson:1h", "--providers", "smart", "--ping-recall", ".5"], "--ping-recall has no effect"),
        (["--changes", "poisson:1h", "--providers", "smart", "--schedule-ahead", "1h"], "also give --providers super"),
        (["--changes", "poisson:1h", "--providers", "smart", "--lie-every", "1h"], "--lie-every has no effect"),
        (["--servers", "mesured"], "did you mean 'measured'?"),
        (["--faults", "model"], "there is no server model; also give --servers"),
        (["--servers", "measured", "--latency", "1s"], "--latency has no effect with --servers"),
        (["--latency-spread", "1"], "also give --latency"),
        (["--bandwidth-spread", "1"], "also give --bandwidth"),
        (["--unannounced"], "also give --requests"),
        (["--faulty-sites", "50%"], "also give --faults"),
        (["--robots", "error", "--disallow", "50%"], "add rules to --robots"),
        (["--changes", "poisson"], "poisson:30s"),
        (["--changes", "bursty:soon"], "bursty:soon"),
        (["--changes", "nowhere"], "nowhere"),
        (["--changes", "poisson:1h", "--validators", "honestly"], "did you mean 'honest'"),
        (["--history", "history.txt"], ".parquet"),
        (["--faults", "rest=1%"], "did you mean 'reset'"),
        (["--faults", "reset=2"], "not between 0 and 1"),
        (["--robots", "rule"], "did you mean 'rules'"),
        (["--names", "address", "--sites-per-address", "2"], "one site on each address"),
        (["--tls", "nothing.pem"], "nothing.pem"),
        (["--tls-key", "nothing.pem"], "--tls"),
        (["--log", "log.txt"], ".parquet"),
        (["--urls-file", "no/such/folder"], "no folder"),
        (["--requests", "some"], "measured"),
    ],
)
def test_invalid_input_is_reported_in_one_line(
    graph: Path, args: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["testweb", str(graph), *args]) == 2
    answer = capsys.readouterr()
    assert hint in answer.err and answer.err.count("\n") == 1 and answer.out == ""


def test_a_missing_graph_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["testweb", "/nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
