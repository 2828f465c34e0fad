"""Scores by a fastText model of the user (`--quality content:fasttext=FILE[:LABEL]`): the probability of a label for the text of a page.

Such models are how corpora are filtered by quality and by language. The package fasttext-predict loads and applies them; the package
fasttext, which also trains them, does as well. Neither lists the labels in all versions, so this module reads them from the file.
Format of the file: `saveModel` in fasttext.cc and `Dictionary::save` in dictionary.cc of fastText 0.9.2.
"""

import mmap
import struct
from collections.abc import Callable
from pathlib import Path

from trapline.errors import ConfigError, nearest

PREFIX = "__label__"
_MAGIC, _VERSIONS = 793712314, (11, 12)
_HEAD = struct.Struct("<ii")  # magic, version
_ARGUMENTS = struct.Struct("<12id")
_DICTIONARY = struct.Struct("<iiiqq")  # entries, words, labels, tokens, pruned words
_ENTRY = struct.Struct("<qb")  # behind the zero byte of the name: count, kind
_LABEL = 1


def labels_of(file: Path) -> list[str]:
    """Return the labels of a model, without their prefix. Raise ValueError if the file is not a model with labels."""
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _labels(data)
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"it is damaged: {error}") from None
    except OSError as error:
        raise ValueError(f"cannot read it: {error.strerror or error}") from None


def _labels(data: mmap.mmap) -> list[str]:
    magic, version = _HEAD.unpack_from(data, 0)
    if magic != _MAGIC or version not in _VERSIONS:
        raise ValueError("it does not begin as one")
    at = _HEAD.size + _ARGUMENTS.size
    entries, *_ = _DICTIONARY.unpack_from(data, at)
    at += _DICTIONARY.size
    found = []
    for _ in range(entries):
        end = data.find(b"\0", at)
        if end < 0:
            raise ValueError("it is damaged: its words have no end")
        _, kind = _ENTRY.unpack_from(data, end + 1)
        if kind == _LABEL:
            found.append(data[at:end].decode().removeprefix(PREFIX))
        at = end + 1 + _ENTRY.size
    if not found:
        raise ValueError("it has no labels; train it with fasttext supervised")
    return found


def fasttext_scorer(source: str, name: str, folder: str = "") -> Callable[[str], float]:
    """Return a function that scores a text. Raise `ConfigError` if that is not possible. `name`: FILE or FILE:LABEL. `folder`: where a
    relative FILE is."""
    file, _, label = (name, "", "") if Path(folder, name).is_file() else name.rpartition(":")
    path = Path(folder, file or name)
    if not path.is_file():
        raise ConfigError(f"--quality {source}: {path}: no such file; name the file of a fastText model")
    try:
        labels = labels_of(path)
    except ValueError as error:
        raise ConfigError(f"--quality {source}: {path}: not a fastText model: {error}; name another file") from None
    wanted = label.removeprefix(PREFIX) if label else labels[0]
    if wanted not in labels:
        raise ConfigError(f"--quality {source}: the model has no label {wanted!r}; {nearest(wanted, labels)}")
    try:
        import fasttext  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise ConfigError(
            f"--quality {source}: needs the package fasttext-predict; run: pip install 'trapline[fasttext]'"
        ) from None
    # Not the method `predict` of the model: with numpy 2, that of the package fasttext raises ValueError.
    try:
        predict = fasttext.load_model(str(path)).f.predict
    except (RuntimeError, ValueError, MemoryError) as error:  # numbers of the file that make no sense
        raise ConfigError(
            f"--quality {source}: {path}: fastText cannot load it: {error or 'out of memory'}; name another file"
        ) from None

    def score(text: str) -> float:
        chances = predict(" ".join(text.split()) + "\n", -1, 0.0, "strict")  # a line break ends the text
        chance = next((chance for chance, name in chances if name == f"{PREFIX}{wanted}"), 0.0)
        return min(1.0, max(0.0, float(chance)))  # rounding gives up to 1.00001

    return score
