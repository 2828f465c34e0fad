"""What the store does before its first batch: the files become what the database says they are.

After a kill or a power cut the archive and the index may be longer than what was committed, and there may be an archive
that the database never heard of. Both are taken away, so that every archive can be read to its end. After an ordinary crash they hold a
commit that was broken off, whose pages are fetched again. But if the database was restored from an older copy, or has lost its log
(crawl.db-wal), they hold the only copy of pages. Nobody can tell the two apart here, so answers that can be read are kept (damaged.py).
"""

from collections.abc import Iterable
from pathlib import Path

from trapline.crawl.store.archive import uncommitted
from trapline.crawl.store.damaged import answers_after, keep_file, keep_tail
from trapline.crawl.store.database import INDEXES, Database
from trapline.crawl.store.folder import ARCHIVES, INDEX, REBUILT_INDEX
from trapline.crawl.store.sorting import remove_leftovers
from trapline.crawl.store.tail import cut_back
from trapline.output import sync


def reopen(folder: Path, database: Database) -> None:
    (folder / ARCHIVES).mkdir(exist_ok=True)
    _take_rebuilt_index(folder, database)
    remove_leftovers(folder / INDEX)
    _keep_uncommitted(folder, database)
    cut_to_committed(folder, database, [])
    database.set_meta("closed", None)
    for name in INDEXES:  # an index makes each row ten times as dear; they are made again when the crawl closes
        database.connection.execute(f"drop index if exists {name}")


def _take_rebuilt_index(folder: Path, database: Database) -> None:
    """Do the last step of a repair that was killed. If the database does not know the new length, the old index stays."""
    rebuilt = folder / REBUILT_INDEX
    if rebuilt.is_file() and rebuilt.stat().st_size == database.index_bytes():
        rebuilt.replace(folder / INDEX)
        sync(folder)


def _keep_uncommitted(folder: Path, database: Database) -> None:
    known = database.archives()
    for _, name, length in known:
        path = folder / ARCHIVES / name
        if path.is_file() and path.stat().st_size > length and any(answers_after(path, length)):
            keep_tail(folder, path, length)
    for path in uncommitted(folder / ARCHIVES, known):
        if any(answers_after(path, 0)):
            keep_file(folder, path)
        else:
            path.unlink()


def cut_to_committed(folder: Path, database: Database, begun: Iterable[Path]) -> None:
    """Remove what was written since the last commit. `begun`: the archives that were begun since."""
    for archive in database.archives():
        cut_back(folder / ARCHIVES / archive.name, archive.bytes)
    for path in begun:
        path.unlink()
    sync(folder / ARCHIVES)
    cut_back(folder / INDEX, database.index_bytes())
