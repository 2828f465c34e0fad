"""Folders of arrays: the format on disk is that of existing snapshots, and after any crash one complete folder is left.

Damage to real snapshots is tried in tests/frontier/test_replay.py and tests/refresh/test_snapshot.py.

"""

import io
import zlib
from pathlib import Path

import numpy as np
import pytest

from trapline import array_folder
from trapline.array_folder import ArrayFolder
from trapline.errors import ConfigError

KIND = ArrayFolder("about.json", "herbarium")
PRESSED = {"leaf": np.arange(6, dtype=np.float64).reshape(2, 3), "none": np.zeros(0, np.int32)}


def in_numpys_format(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def leaves(folder: Path) -> list[float]:
    with KIND.opened(folder) as saved:
        return saved.arrays({"leaf": np.float64})["leaf"].ravel().tolist()


def test_the_format_on_disk_is_that_of_existing_snapshots(tmp_path: Path) -> None:
    KIND.save(tmp_path / "a", {"format": 3, "rules": {"delay_s": 1.5}}, PRESSED)
    checksum = zlib.crc32(PRESSED["leaf"].tobytes())
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == {
        "about.json": b'{\n "format": 3,\n "rules": {\n  "delay_s": 1.5\n },\n "checksums": {\n  "leaf": %d,\n  "none": 0\n }\n}'
        % checksum,
        **{f"{name}.npy": in_numpys_format(array) for name, array in PRESSED.items()},
    }
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_an_array_in_columns_has_the_checksum_of_its_rows(tmp_path: Path) -> None:
    KIND.save(tmp_path / "a", {}, {"leaf": np.asfortranarray(PRESSED["leaf"])})
    assert leaves(tmp_path / "a") == list(range(6))


@pytest.mark.parametrize("dies_at", range(1, 6))
def test_a_crash_at_any_moment_leaves_a_complete_folder(
    dies_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each moment is one at which something reached the disk: an array, a flush, or a rename."""
    KIND.save(tmp_path / "a", {}, PRESSED)
    moments = 0

    def mortal(name: str, owner: object) -> None:
        step = getattr(owner, name)

        def die(*given: object) -> object:
            nonlocal moments
            moments += 1
            if moments == dies_at:
                raise KeyboardInterrupt
            return step(*given)

        monkeypatch.setattr(owner, name, die)

    mortal("_write", array_folder)
    mortal("sync", array_folder)
    mortal("rename", Path)
    with pytest.raises(KeyboardInterrupt):
        KIND.save(tmp_path / "a", {}, {"leaf": PRESSED["leaf"] + 10.0})
    assert leaves(tmp_path / "a") in ([0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15])
    monkeypatch.undo()
    KIND.save(tmp_path / "a", {}, {"leaf": PRESSED["leaf"] + 20.0})
    assert leaves(tmp_path / "a") == [20, 21, 22, 23, 24, 25]


def test_a_damaged_folder_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a complete herbarium"), KIND.opened(tmp_path / "nothing"):
        pass
    KIND.save(tmp_path / "a", {"press": "oak"}, PRESSED)
    with pytest.raises(ConfigError, match="made with press 'oak', not 'iron'"), KIND.opened(tmp_path / "a") as saved:
        saved.check_made_with(press="iron")
    leaf = tmp_path / "a" / "leaf.npy"
    leaf.write_bytes(leaf.read_bytes()[:-1] + b"\1")
    with pytest.raises(ConfigError, match=r"leaf.npy: the checksum does not match; the file was damaged or replaced"):
        leaves(tmp_path / "a")


def test_a_folder_of_another_kind_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "letter").touch()
    with pytest.raises(ConfigError, match="exists and is not a herbarium; name another folder"):
        KIND.save(tmp_path, {}, PRESSED)
    assert (tmp_path / "letter").exists()
