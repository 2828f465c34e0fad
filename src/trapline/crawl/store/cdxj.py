"""The lines of index.cdxj: which record answers for a URL at a time. Pure, as pywb reads them.

SURT key, time to the second, and a JSON object: https://pywb.readthedocs.io/en/latest/manual/indexing.html
"""

import time
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted

from trapline.crawl.store.archive import Place
from trapline.crawl.store.surt import surt

REVISIT = "warc/revisit"  # stands in place of the mime type, as in other indexes
NO_STATUS = "-"


def line(url: str, started: float, mime: str, status: int | str, digest: str, place: Place, filename: str) -> bytes:
    return (
        f'{surt(url)} {_stamp(int(started))} {{"url": {quoted(url)}, "mime": {quoted(mime or "unk")}, '
        f'"status": "{status}", "digest": "{digest or "-"}", '
        f'"length": "{place.length}", "offset": "{place.offset}", "filename": {quoted(filename)}}}\n'
    ).encode()


@lru_cache(maxsize=256)
def _stamp(second: int) -> str:
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(second))
