"""live/status: a reader sees whole records only, and what cannot be written harms nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trapline.crawler.files.status_file import LIVE, STATUS, StatusFile, read_status
from trapline.errors import ConfigError

_WRITER = """
import sys
from pathlib import Path
from trapline.crawler.files.status_file import StatusFile
file = StatusFile(Path(sys.argv[1]))
for number in range(2_000):
    file.write({"number": number, "text": "x" * (number * 37 % 40_000), "again": number})
"""


def test_a_reader_sees_whole_records_in_order_while_another_process_writes(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)])
    seen = []
    while writer.poll() is None:
        if (found := read_status(tmp_path)) is not None:
            assert found["number"] == found["again"] and len(found["text"]) == found["number"] * 37 % 40_000
            seen.append(found["number"])
    assert seen == sorted(seen) and len(set(seen)) > 1
    last = read_status(tmp_path)
    assert last is not None and last["number"] == 1_999


def test_a_shorter_record_after_a_longer_one_is_whole(tmp_path: Path) -> None:
    file = StatusFile(tmp_path)
    for size in (50_000, 10, 16 * 1024 - 30, 16 * 1024, 0):
        file.write({"text": "é" * size})
        assert read_status(tmp_path) == {"text": "é" * size}


def test_a_record_that_fits_into_the_room_of_the_first_one_does_not_change_the_length_of_the_file(
    tmp_path: Path,
) -> None:
    file, path = StatusFile(tmp_path), tmp_path / LIVE / STATUS
    file.write({})
    length = path.stat().st_size
    file.write({"text": "x" * 10_000})
    assert path.stat().st_size == length == 16 * 1024


@pytest.mark.parametrize("data", [b"", b"3\n{}", b"2 0\n{}", b"x y\n{}", b"2 a3830348\n[]", b"\xff" * 99, b"9" * 5000])
def test_what_is_no_record_is_read_as_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / LIVE).mkdir()
    (tmp_path / LIVE / STATUS).write_bytes(data)
    assert read_status(tmp_path) is None


def test_a_folder_without_a_record_is_read_as_none(tmp_path: Path) -> None:
    assert read_status(tmp_path) is None and read_status(tmp_path / "missing") is None


def test_a_crawl_without_a_folder_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError), StatusFile(None) as file:
        file.write({"a": 1})
        raise ConfigError("stopped")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_raises_nothing_and_leaves_no_record(tmp_path: Path) -> None:
    (tmp_path / LIVE).mkdir()
    (tmp_path / LIVE / STATUS).symlink_to("/dev/full")
    with StatusFile(tmp_path) as file:
        file.write({"a": 1})
        file.write_failure("the disk is full")


def test_a_folder_that_cannot_be_written_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with StatusFile(tmp_path / "file") as file:
        file.write({"a": 1})
    with StatusFile(tmp_path / "missing") as file:
        file.write({"a": 1})
    assert not (tmp_path / "missing").exists()


def test_the_error_that_ends_a_crawl_is_noted_beside_its_last_record(tmp_path: Path) -> None:
    with pytest.raises(ConfigError), StatusFile(tmp_path) as file:
        file.write({"pages": 7, "failure": ""})
        raise ConfigError("the disk is full; make room")
    found = read_status(tmp_path)
    assert found is not None
    assert (found["pages"], found["failure"], found["process"]) == (7, "the disk is full; make room", os.getpid())


def test_a_run_that_fails_before_its_first_record_keeps_the_last_record_of_the_run_before(tmp_path: Path) -> None:
    with StatusFile(tmp_path) as file:
        file.write({"pages": 7, "failure": ""})
    with pytest.raises(KeyError), StatusFile(tmp_path):
        raise KeyError("a defect")
    found = read_status(tmp_path)
    assert found is not None and (found["pages"], found["failure"]) == (7, "KeyError: 'a defect'")


def test_ctrl_c_is_no_failure(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), StatusFile(tmp_path) as file:
        file.write({"failure": ""})
        raise KeyboardInterrupt
    assert read_status(tmp_path) == {"failure": ""}
