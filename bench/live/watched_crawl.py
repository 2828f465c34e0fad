"""A crawl whose dashboard is open, and whose metrics are scraped every second: python watched_crawl.py PORT COMMAND...

This process becomes the crawl, so that its processor time is that of the crawl. A child looks at the dashboard as a browser does that
shows the overview: it reads the stream, and loads the history once in a while.
"""

import http.client
import os
import sys
import threading
import time
from contextlib import suppress

_SCRAPE_S = 1.0
_HISTORY_S = 5.0
_RETRY_S = 0.05


def main() -> None:
    port, command, crawl = int(sys.argv[1]), sys.argv[2:], os.getpid()
    if os.fork() == 0:
        watch(port, crawl)
    os.execv(command[0], command)


def watch(port: int, crawl: int) -> None:
    for path, every_s in (("/metrics", _SCRAPE_S), ("/api/0/history", _HISTORY_S)):
        threading.Thread(target=poll, args=(port, path, every_s), daemon=True).start()
    threading.Thread(target=read_stream, args=(port,), daemon=True).start()
    while os.getppid() == crawl:
        time.sleep(_RETRY_S)
    os._exit(0)


def poll(port: int, path: str, every_s: float) -> None:
    while True:
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path)
            connection.getresponse().read()
            connection.close()
            time.sleep(every_s - _RETRY_S)
        time.sleep(_RETRY_S)


def read_stream(port: int) -> None:
    while True:
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/api/0/stream", headers={"Accept": "text/event-stream"})
            answer = connection.getresponse()
            while answer.readline():
                pass
        time.sleep(_RETRY_S)


if __name__ == "__main__":
    main()
