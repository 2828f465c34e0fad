"""The server process that `serve` starts: reads a web from standard input, serves it, and sends its log on request.

It ends when its input ends. It is not for users, who have the command `trapline testweb`.
"""

import asyncio
import signal
import sys
import threading

import uvloop

from trapline.errors import ConfigError
from trapline.terminal import guard_stderr
from trapline.testweb.server.process import receive, send
from trapline.testweb.server.server import Server


def main() -> None:
    guard_stderr()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and then closes our input
    arguments = receive(sys.stdin.buffer)
    try:
        server = Server(*arguments)
    except ConfigError as error:
        send(sys.stdout.buffer, str(error))
        return
    uvloop.run(_serve(server))


async def _serve(server: Server) -> None:
    await server.start()
    send(sys.stdout.buffer, (server.web.port, server.web.began))
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    # A thread reads the pipe, because the event loop would make it non-blocking, and the parent's end with it.
    threading.Thread(target=_listen, args=(server, loop, ended), daemon=True).start()
    await ended.wait()
    await server.stop()


def _listen(server: Server, loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """Answer each request of the parent with the log. The event loop reads the log, because it also writes it."""
    while True:
        try:
            receive(sys.stdin.buffer)
        except EOFError:
            loop.call_soon_threadsafe(ended.set)
            return
        answered = asyncio.run_coroutine_threadsafe(_columns(server), loop)
        send(sys.stdout.buffer, answered.result())


async def _columns(server: Server) -> object:
    return server.log().columns


main()
