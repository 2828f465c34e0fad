"""Small recorded data that comes with Trapline: an update trace, `peps`, and a graph, `python-docs`.

The name of a sample can be given wherever a trace or a graph can be given, unless a file or folder has the same name. The folder of a
sample has an ORIGIN.txt that says where the data comes from, how it was recorded, and what its licence is.
"""

from pathlib import Path

TRACES = ("peps",)
GRAPHS = ("python-docs",)
_FOLDER = Path(__file__).parent


def located(source: Path | str) -> Path:
    """Return the folder of the sample that `source` names, or `source` itself if it exists or names no sample.

    >>> located("peps").parent.name, located("no-sample")
    ('samples', PosixPath('no-sample'))
    """
    path = Path(source)
    return _FOLDER / path if str(path) in TRACES + GRAPHS and not path.exists() else path
