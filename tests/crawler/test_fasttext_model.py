"""A fastText model of the user scores text. The models of these tests have two words and two labels, and are written by hand."""

import math
import struct
import sys
from pathlib import Path

import pytest

from trapline.crawler.quality.fasttext_model import fasttext_scorer, labels_of
from trapline.errors import ConfigError

VECTORS = {"the": (1.0, 0.0), "buy": (0.0, 1.0)}
LABELS = {"good": (2.0, -2.0), "bad": (-2.0, 2.0)}


def written(file: Path, labels: dict[str, tuple[float, float]]) -> Path:
    """Write a model: dimension 2, softmax, no n-grams. Kind 0 is a word, kind 1 a label."""
    names = [(word, 0) for word in VECTORS] + [(f"__label__{label}", 1) for label in labels]
    parts = [struct.pack("<ii12id", 793712314, 12, 2, 5, 1, 1, 5, 1, 3, 3, 0, 0, 0, 100, 1e-4)]
    parts.append(struct.pack("<iiiqq", len(names), len(VECTORS), len(labels), 100, -1))
    parts += [name.encode() + struct.pack("<bqb", 0, 10, kind) for name, kind in names]
    for rows in (VECTORS, labels):
        parts.append(struct.pack("<?qq", False, len(rows), 2))
        parts += [struct.pack("<2f", *row) for row in rows.values()]
    file.write_bytes(b"".join(parts))
    return file


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return written(tmp_path / "model.bin", LABELS)


def test_the_score_is_the_probability_of_the_label(model: Path) -> None:
    pytest.importorskip("fasttext", reason="the extra fasttext is not installed")
    text = "the the\nthe buy"
    mean = (0.75, 0.25)
    weights = {label: math.exp(sum(a * b for a, b in zip(mean, row, strict=True))) for label, row in LABELS.items()}
    expected = {label: weight / sum(weights.values()) for label, weight in weights.items()}
    for name, label in ((f"{model}", "good"), (f"{model}:good", "good"), (f"{model}:__label__bad", "bad")):
        # fastText looks exponentials up in a table
        assert fasttext_scorer("content:fasttext=", name)(text) == pytest.approx(expected[label], abs=1e-2)


def test_a_text_without_known_words_has_the_score_0(model: Path) -> None:
    pytest.importorskip("fasttext", reason="the extra fasttext is not installed")
    assert fasttext_scorer("", str(model))("xyz") == fasttext_scorer("", str(model))("") == 0.0


def test_labels_come_from_the_file(model: Path) -> None:
    assert labels_of(model) == ["good", "bad"]


def test_a_relative_file_is_in_the_folder_of_the_crawl(model: Path) -> None:
    """Not in that of a later resume."""
    pytest.importorskip("fasttext", reason="the extra fasttext is not installed")
    for name in (model.name, f"{model.name}:good"):
        assert fasttext_scorer("", name, str(model.parent))("the") > 0.5
    with pytest.raises(ConfigError, match="no such file"):
        fasttext_scorer("", model.name, str(model.parent.parent))


def test_a_file_that_fasttext_cannot_load_is_one_line(model: Path) -> None:
    pytest.importorskip("fasttext", reason="the extra fasttext is not installed")
    data = bytearray(model.read_bytes())
    struct.pack_into("<i", data, 32, 100)  # the kind of loss
    model.write_bytes(data)
    with pytest.raises(ConfigError, match=r"fastText cannot load it: .*; name another file"):
        fasttext_scorer("content:fasttext=", str(model))


def test_errors_say_what_to_do(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, empty = tmp_path / "broken.bin", tmp_path / "empty.bin"
    broken.write_bytes(model.read_bytes()[:100])
    empty.write_bytes(b"")
    wordless = written(tmp_path / "vectors.bin", {})
    for name, why in (
        (f"{model}:fine", "the model has no label 'fine'; valid: bad, good"),
        (f"{broken}", "not a fastText model: it is damaged"),
        (f"{empty}", "not a fastText model"),
        (f"{wordless}", "it has no labels; train it with fasttext supervised"),
        (f"{tmp_path / 'none.bin'}", "no such file; name the file of a fastText model"),
    ):
        with pytest.raises(ConfigError, match=why):
            fasttext_scorer("content:fasttext=", name)
    monkeypatch.setitem(sys.modules, "fasttext", None)
    with pytest.raises(ConfigError, match="needs the package fasttext-predict; run: pip install"):
        fasttext_scorer("content:fasttext=", str(model))
