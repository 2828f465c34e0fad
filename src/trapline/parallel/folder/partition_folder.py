"""The folder of one partition of a crawl: it is no crawl of its own."""

from contextlib import closing
from pathlib import Path

from trapline.crawler.inspect.database_reader import meta, opened
from trapline.errors import ConfigError
from trapline.parallel.folder.manifest import is_parallel


def refuse_partition(folder: Path) -> None:
    """Refuse to resume one partition alone: it would take the whole web as its own. This also holds for a partition that was moved."""
    if is_parallel(folder):
        return
    with closing(opened(folder)) as database:
        if "partition" not in meta(database):
            return
    whole = folder.absolute().parent
    if is_parallel(whole):
        raise ConfigError(f"{folder}: is one partition of the crawl in {whole}; resume that crawl: --resume {whole}")
    raise ConfigError(
        f"{folder}: is one partition of a crawl of several processes; move it back there, and resume the whole crawl"
    )
