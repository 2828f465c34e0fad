"""The dashboard of a crawl, as a process beside it: `python -m trapline.dashboard`. It reads its settings as one line of JSON from
standard input, and writes one line of JSON to standard output when it serves, or when it cannot.

When standard input ends, the command that started it is gone, and the process ends too.
"""

import asyncio
import json
import os
import sys
import threading

import uvloop

from trapline.dashboard.server import DashboardServer
from trapline.dashboard.settings import DashboardSettings
from trapline.errors import ConfigError
from trapline.terminal import say

_NICENESS = 10  # so that it never slows the crawl down


async def _serve(server: DashboardServer) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def wait_for_the_other_end() -> None:
        while os.read(0, 1):
            pass
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait_for_the_other_end, daemon=True).start()
    await server.run(stop)


def main() -> int:
    os.nice(_NICENESS)
    try:
        server = DashboardServer(DashboardSettings.from_line(sys.stdin.buffer.readline()))
    except ConfigError as error:
        say(json.dumps({"error": str(error)}))
        return 2
    say(json.dumps({"pages": server.page_url, "metrics": server.metrics_url, "metrics_token": server.metrics_token}))
    uvloop.run(_serve(server))
    return 0


if __name__ == "__main__":
    sys.exit(main())
