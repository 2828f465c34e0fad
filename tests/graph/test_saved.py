"""Saved graphs: a saved graph is loaded unchanged, other files are never overwritten, and a damaged folder gives a
one-line error."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trapline.errors import ConfigError
from trapline.graph import Graph, generate, load_graph, save
from trapline.graph.strings import StoredStrings

ARRAYS = ("offsets", "targets", "site", "home", "dynamic", "ips")


def same(one: Graph, other: Graph) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ARRAYS)


@pytest.fixture
def web() -> Graph:
    return generate(400, 20, seed=5, sites_per_ip=2)


@pytest.fixture
def folder(web: Graph, tmp_path: Path) -> Path:
    save(web, tmp_path / "web")
    return tmp_path / "web"


def test_a_generated_web_comes_back_with_its_urls_and_parameters(web: Graph, folder: Path) -> None:
    loaded = load_graph(folder)
    assert same(web, loaded)
    assert loaded.origin == web.origin
    assert loaded.urls is not None and web.urls is not None
    assert [loaded.urls[page] for page in range(400)] == [web.urls[page] for page in range(400)]


def test_stored_urls_names_and_sizes_come_back(web: Graph, tmp_path: Path) -> None:
    urls = StoredStrings.of(f"http://ü/{page}" for page in range(web.pages))
    names = StoredStrings.of(f"n{site}" for site in range(web.sites))
    sizes = np.arange(web.pages, dtype=np.int64)
    save(replace(web, urls=urls, site_names=names, sizes=sizes), tmp_path / "web")
    loaded = load_graph(tmp_path / "web")
    assert loaded.urls is not None and loaded.urls[399] == "http://ü/399"
    assert loaded.site_names is not None and loaded.site_names[19] == "n19"
    assert np.array_equal(loaded.sizes, sizes)


def test_a_graph_without_links_or_urls_comes_back(tmp_path: Path) -> None:
    zero = np.zeros(1, dtype=np.int32)
    alone = Graph(np.zeros(2, np.int64), np.zeros(0, np.int32), zero, zero, np.zeros(1, np.uint8), zero)
    save(alone, tmp_path / "web")
    assert same(alone, load_graph(tmp_path / "web"))
    assert load_graph(tmp_path / "web").urls is None


def test_loaded_arrays_can_be_written_and_the_files_do_not_change(web: Graph, folder: Path) -> None:
    load_graph(folder).targets[:] = 0
    assert same(web, load_graph(folder))


def test_existing_files_are_overwritten_only_on_request(web: Graph, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    for name, reason in (("web", "--replace"), ("mine", "other files"), ("file", "is not a folder")):
        with pytest.raises(ConfigError, match=reason):
            save(web, tmp_path / name)
    with pytest.raises(ConfigError, match="other files"):
        save(web, tmp_path / "mine", replace=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine", "web"]


@pytest.mark.parametrize("at", [1, 2])
def test_an_interrupt_between_the_renames_leaves_a_complete_graph(
    web: Graph, folder: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C when the first or the second rename returns. Then the old graph or the new one is there."""
    other = generate(10, 2, seed=1)
    renames: list[Path] = []
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        answer = rename(self, target)
        renames.append(self)
        if len(renames) == at:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(other, folder, replace=True)
    monkeypatch.undo()
    assert same(load_graph(folder), web if at == 1 else other)


def test_a_graph_that_a_killed_process_renamed_is_restored(web: Graph, folder: Path) -> None:
    folder.rename(folder.with_name(f".{folder.name}.old"))
    with pytest.raises(ConfigError, match="--replace"):
        save(generate(10, 2, seed=1), folder)
    assert same(load_graph(folder), web)


def test_a_link_to_a_folder_stays_a_link(web: Graph, folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    save(generate(10, 2, seed=1), link, replace=True)
    assert link.is_symlink() and load_graph(folder).pages == load_graph(link).pages == 10


def test_a_folder_with_other_files_is_never_replaced(tmp_path: Path) -> None:
    web = generate(20, 3, seed=1)
    save(web, tmp_path / "web")
    (tmp_path / "web" / "notes.txt").write_text("precious")
    with pytest.raises(ConfigError, match=r"other files \(notes\.txt\)"):
        save(web, tmp_path / "web", replace=True)
    assert (tmp_path / "web" / "notes.txt").read_text() == "precious"


def test_a_saved_graph_is_replaced_on_request(folder: Path) -> None:
    save(generate(10, 2, seed=1), folder, replace=True)
    assert load_graph(folder).pages == 10
    assert [path.name for path in folder.parent.iterdir()] == ["web"]


def test_an_empty_folder_and_missing_parents_are_accepted(web: Graph, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    save(web, tmp_path / "empty")
    save(web, tmp_path / "a" / "b" / "c")
    assert same(load_graph(tmp_path / "empty"), load_graph(tmp_path / "a" / "b" / "c"))


def test_a_failed_save_leaves_nothing(web: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full_disk)
    with pytest.raises(ConfigError, match="web: cannot be written: No space left on device"):
        save(web, tmp_path / "web")
    assert not list(tmp_path.iterdir())


def broken_array(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        array = change(np.load(folder / f"{name}.npy"))
        np.save(folder / f"{name}.npy", array)

    return damage


def set_value(index: int, value: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array[index] = value
        return array

    return change


def broken_head(**values: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        head = json.loads((folder / "graph.json").read_text())
        (folder / "graph.json").write_text(json.dumps(head | values))

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "site.npy").unlink(), "site.npy is missing"),
        (lambda folder: (folder / "site.npy").write_bytes(b"x"), "site.npy: not a complete .npy file"),
        (lambda folder: (folder / "site.npy").write_bytes(b""), "or generate or convert the graph again"),
        (
            lambda folder: (folder / "targets.npy").write_bytes((folder / "targets.npy").read_bytes()[:-9]),
            "targets.npy: not a complete .npy file",
        ),
        (lambda folder: (folder / "graph.json").write_text("{\n\n,"), "graph.json: row 3: not JSON"),
        (lambda folder: (folder / "graph.json").write_text("[]"), "graph.json, row 1: not a graph saved by trapline"),
        (broken_head(version=99), "version is 99"),
        (broken_head(links=1), "says 1 links"),
        (broken_array("targets", lambda a: a.astype(np.int64)), "targets.npy: an array of int64"),
        (broken_array("targets", set_value(7, 400)), "targets: value 7 is 400, not in 0..399"),
        (broken_array("targets", set_value(0, -1)), "targets: value 0 is -1"),
        (broken_array("offsets", set_value(3, 10**6)), "offsets: value 4 is smaller"),
        (broken_array("offsets", set_value(0, 1)), "offsets: must go from 0"),
        (broken_array("site", set_value(1, 20)), "site: value 1 is 20"),
        (broken_array("home", set_value(1, 0)), "home: page 0 is not on site 1"),
        (broken_array("dynamic", lambda a: a[:-1]), "dynamic: 399 values where 400 are needed"),
        (broken_array("ips", set_value(0, 77)), "ips: value 0 is 77"),
    ],
)
def test_a_damaged_folder_is_reported_in_one_line(folder: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(folder)
    with pytest.raises(ConfigError) as error:
        load_graph(folder)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
