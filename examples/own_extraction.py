"""Writes title and length of every page to pages-PID.jsonl, where PID is the number of the process, as a handler of the command:

    trapline crawl https://example.org/ -o crawl --handler examples/own_extraction.py:TitleWriter

The handler is called again after `--resume`, for the pages that it has not received yet. With `--processes N` each process has
a handler of its own, and so a file of its own. For a few lines, a function will do as well:
`--handler examples/own_extraction.py:print_title`.
"""

import json
import os

import trapline


def print_title(page: trapline.Page) -> None:
    print(page.url, page.title)


class TitleWriter:
    def __init__(self) -> None:
        self._file = open(f"pages-{os.getpid()}.jsonl", "a", encoding="utf-8")  # noqa: SIM115  closed below

    def page(self, page: trapline.Page) -> None:
        if page.is_html:
            found = {"url": page.url, "title": page.title, "characters": len(page.visible_text)}
            print(json.dumps(found, ensure_ascii=False), file=self._file, flush=True)

    def failed(self, fetch: trapline.FailedFetch) -> None:
        print(json.dumps({"url": fetch.url, "error": fetch.error, "status": fetch.status}), file=self._file)

    def close(self) -> None:
        self._file.close()
