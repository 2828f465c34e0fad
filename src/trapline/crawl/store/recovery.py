"""What the store does before its first batch: the files become what the database says they are.

After a kill or a power cut the archive and the index may be longer than what was committed, and there may be a file
that the database never heard of. Both are cut away, so that every archive can be read to its end.
"""

import re
from pathlib import Path

from trapline.crawl.store.database import INDEXES, Database
from trapline.crawl.store.folder import ARCHIVES, INDEX
from trapline.crawl.store.sorting import remove_leftovers
from trapline.crawl.store.tail import cut_back
from trapline.output import sync

_NUMBER = re.compile(r"-(\d+)\.warc\.gz$")


def reopen(folder: Path, database: Database) -> None:
    (folder / ARCHIVES).mkdir(exist_ok=True)
    remove_leftovers(folder / INDEX)
    cut_to_committed(folder, database)
    database.set_meta("closed", None)
    for name in INDEXES:  # an index makes each row ten times as dear; they are made again when the crawl closes
        database.connection.execute(f"drop index if exists {name}")


def cut_to_committed(folder: Path, database: Database) -> None:
    known = database.archives()
    for archive in known:
        cut_back(folder / ARCHIVES / archive.name, archive.bytes)
    for path in (folder / ARCHIVES).iterdir():
        if is_uncommitted(path, len(known)):
            path.unlink()
    sync(folder / ARCHIVES)
    cut_back(folder / INDEX, database.index_bytes())


def is_uncommitted(path: Path, archives: int) -> bool:
    """Return whether the store began this archive and never committed it. `archives`: the number of committed ones."""
    number = _NUMBER.search(path.name)
    return number is not None and int(number[1]) >= archives and path.is_file()
