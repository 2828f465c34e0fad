"""Traces from files: the three formats, one-line errors, and the recorded traces where they are present."""

import gzip
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from trapline.errors import ConfigError
from trapline.refresh import drawn_trace, in_steps, load_trace, trace_of_pages


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return file


@pytest.mark.parametrize("name", ["edits.txt", "edits.txt.gz"])
def test_reading_an_edit_log(tmp_path: Path, name: str) -> None:
    trace = load_trace(write(tmp_path, name, "1 10 5\n2 11 7\n1 10 9\n"))
    assert (trace.pages, trace.updates, trace.sites, trace.horizon_s) == (2, 3, 1, 4.0)
    assert trace.at_s.tolist() == [0.0, 4.0, 2.0]


def test_a_change_log_keeps_front_pages_only_if_there_are_any(tmp_path: Path) -> None:
    rows = "unix_ts\tpage\n100\tREADME.md\n110\ta_urls.json\n130\tb_urls.json\n150\ta_urls.json\n"
    trace = load_trace(write(tmp_path, "changes.tsv", rows))
    assert (trace.pages, trace.updates, trace.sites, trace.horizon_s) == (2, 3, 2, 40.0)
    assert load_trace(write(tmp_path, "other.tsv", "unix_ts\tpage\n1\thttp://a.org/x\n3\thttp://a.org/y\n")).sites == 1


def test_histories_begin_when_half_of_their_pages_exist(tmp_path: Path) -> None:
    rows = "#page\tunix_times_delta_encoded\nhttp://a.org/\t100 50 100\nhttp://b.org/\t200 100\nhttp://b.org/2\t900\n"
    file = write(tmp_path, "h.tsv", rows)
    trace = load_trace(file)
    assert np.diff(trace.offsets).tolist() == [1, 2, 1]
    assert trace.at_s.tolist() == [50.0, 0.0, 100.0, 700.0]
    assert trace.site.tolist() == [0, 1, 1]
    assert load_trace(file, whole=True).updates == 6


def test_a_folder_is_read_by_the_trace_in_it(tmp_path: Path) -> None:
    write(tmp_path, "ORIGIN.txt", "from somewhere\n")
    write(tmp_path, "docs.tsv", "#id\tdocument\turl\n0\tA/Terms\thttps://a.org/t\n1\tB/Terms\t\n")
    write(tmp_path, "raw_changes.tsv", "#id\tunix_times_delta_encoded\n0\t1 1 1 1\n")
    write(tmp_path, "content_changes.tsv", "#id\tunix_times_delta_encoded\n0\t1 4\n1\t1\n")
    trace = load_trace(tmp_path)
    assert (trace.name, trace.pages, trace.updates, trace.sites) == (tmp_path.name, 2, 3, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3\n4 5\n", "row 2: '4 5' is not `editor page seconds`"),
        ("1 2 3\n1 2 x\n", "row 2: 'x' is not an integer"),
        ("unix_ts\tpage\n7\n", "row 2: '7' is not `unix_ts"),
        ("#p\tunix_times_delta_encoded\na\t1 -2\n", "row 2: '-2' is not an integer"),
        ("#p\tunix_times_delta_encoded\n", "no pages in it"),
        ("1 2 3\n1 2 3\n", "all its updates are at the same moment"),
        ("hello\n", "not an update trace; give a file with rows `editor page seconds`"),
        ("", "not an update trace"),
    ],
)
def test_an_invalid_file_is_reported_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_trace(write(tmp_path, "t.txt", text))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_reported_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "t.gz").write_text("1 2 3\n")
    with pytest.raises(ConfigError, match=r"t\.gz, row 1: not a gzip file; rename it"):
        load_trace(tmp_path / "t.gz")
    with pytest.raises(ConfigError, match="/dev/null: not a file; give a regular file"):
        load_trace(Path("/dev/null"))


def test_a_folder_without_a_trace_or_with_several(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no update trace in it"):
        load_trace(tmp_path)
    write(tmp_path, "a.txt", "1 2 3\n")
    write(tmp_path, "b.txt", "1 2 3\n")
    with pytest.raises(ConfigError, match=r"several update traces in it \(a.txt, b.txt\)"):
        load_trace(tmp_path)
    with pytest.raises(ConfigError, match="no such file"):
        load_trace(tmp_path / "none")


def test_steps_are_the_changes_that_a_poll_would_see() -> None:
    trace = trace_of_pages("t", [np.array([0.0, 10.0, 20.0, 31.0]), np.array([100.0])], ["a", "b"])
    polled = in_steps(trace, 30.0)
    assert polled.at_s.tolist() == [0.0, 30.0, 60.0, 120.0]
    assert np.diff(polled.offsets).tolist() == [3, 1] and polled.horizon_s == 120.0


@pytest.mark.parametrize("kind", ["poisson", "bursty"])
def test_sampled_traces_have_the_requested_properties(kind: str) -> None:
    trace = drawn_trace(kind, 50, 2_000, 10.0, seed=3)
    assert (trace.pages, trace.updates) == (50, 2_000)
    assert trace.at_s.min() >= 0 and trace.at_s.max() <= trace.horizon_s == 864_000.0
    pages = [trace.at_s[begin:end] for begin, end in pairwise(trace.offsets)]
    gaps = np.concatenate([np.diff(page_s) * len(page_s) / trace.horizon_s for page_s in pages])
    assert np.all(gaps >= 0)
    # Gaps relative to the page's mean: those of a Poisson process spread like their mean, those of bursts more.
    spread = gaps.std() / gaps.mean()
    assert spread == pytest.approx(1.0, abs=0.2) if kind == "poisson" else spread > 1.5


@pytest.mark.parametrize(
    ("name", "pages", "updates", "sites"),
    [
        ("wikipedia-edits", 1_000, 157_474, 1),
        ("git-page-changes", 742, 16_878, 1),
        ("ota-page-changes", 877, 40_842, 400),
        ("news-frontpages", 11, 198_366, 11),
    ],
)
def test_counts_of_the_recorded_traces(recorded_data: Path, name: str, pages: int, updates: int, sites: int) -> None:
    trace = load_trace(recorded_data / name, whole=True)
    assert (trace.pages, trace.updates, trace.sites) == (pages, updates, sites)
