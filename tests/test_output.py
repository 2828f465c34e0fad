"""A file for the user is complete or absent, and an impossible destination is reported before the work."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trapline.errors import ConfigError, InvariantError
from trapline.output import atomic, check_writable, write_bytes, write_json, write_text


def _folder(tmp: Path) -> Path:
    return tmp


def _in_missing_folder(tmp: Path) -> Path:
    return tmp / "missing" / "out.json"


def _below_a_file(tmp: Path) -> Path:
    (tmp / "file").write_text("x")
    return tmp / "file" / "out.json"


def _read_only_file_system(tmp: Path) -> Path:
    return Path("/proc/out.json")


def _name_too_long(tmp: Path) -> Path:
    return tmp / ("x" * 300)


def _loop_of_links(tmp: Path) -> Path:
    (tmp / "loop").symlink_to(tmp / "loop")
    return tmp / "loop"


HOPELESS = [
    _folder,
    _in_missing_folder,
    _below_a_file,
    pytest.param(_read_only_file_system, marks=pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")),
    _name_too_long,
    _loop_of_links,
]


@pytest.mark.parametrize("place", HOPELESS)
@pytest.mark.parametrize("act", [check_writable, lambda path: write_text(path, "x")])
def test_an_impossible_destination_is_reported_in_one_line_that_names_it(
    place: Callable[[Path], Path], act: Callable[[Path], None], tmp_path: Path
) -> None:
    path = place(tmp_path)
    with pytest.raises(ConfigError) as caught:
        act(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_file_or_folder_is_refused(tmp_path: Path) -> None:
    protected = tmp_path / "file"
    protected.write_text("x")
    protected.chmod(0o444)
    with pytest.raises(ConfigError, match="read-only"):
        check_writable(protected)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    with pytest.raises(ConfigError, match="Permission denied"):
        check_writable(closed / "out.json")


def test_checking_leaves_nothing_behind_and_changes_nothing(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("kept")
    check_writable(old)
    check_writable(tmp_path / "new")
    assert [p.name for p in tmp_path.iterdir()] == ["old"]
    assert old.read_text() == "kept"


@pytest.mark.parametrize("exception", [RuntimeError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file(exception: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("before")
    with pytest.raises(exception), atomic(path) as file:
        file.write(b"half")
        raise exception
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("before")
    program = (
        "import os, signal, sys; from trapline.output import atomic\n"
        "with atomic(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode < 0
    assert path.read_text() == "before"


def test_a_full_disk_is_a_user_error(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with pytest.raises(ConfigError, match="out: No space left"), atomic(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []


def test_a_destination_that_becomes_impossible_during_the_work_is_named(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with pytest.raises(ConfigError, match="out: Is a directory"), atomic(path) as file:
        file.write(b"x")
        path.mkdir()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_failure_to_open_another_file_is_not_reported_for_this_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="elsewhere"), atomic(tmp_path / "out"):
        (tmp_path / "elsewhere").read_text()


def test_the_target_of_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_text(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "x"


def test_a_device_is_written_in_place(tmp_path: Path) -> None:
    check_writable("/dev/null")
    write_bytes("/dev/null", b"x")
    assert Path("/dev/null").is_char_device()


def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "ordinary").write_text("x")
    write_text(tmp_path / "ours", "x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_json_is_read_back_as_written(tmp_path: Path) -> None:
    value = {"strategy": "opic", "curve": [[0.1, 0.25], [1.0, 1.0]], "pages": 3}
    write_json(tmp_path / "out.json", value)
    assert json.loads((tmp_path / "out.json").read_text()) == value


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_json_refuses_nan_and_infinity_and_writes_nothing(number: float, tmp_path: Path) -> None:
    with pytest.raises(InvariantError, match=r"out\.json"):
        write_json(tmp_path / "out.json", {"tau": [number]})
    assert list(tmp_path.iterdir()) == []
