"""The process behind `serve`: reads a web from its standard input, serves it, and answers questions until the input ends.

Not for users: they have `trapline testweb`.
"""

import asyncio
import signal
import sys
import threading

import uvloop

from trapline.errors import ConfigError
from trapline.terminal import guard_stderr
from trapline.testweb.serve import receive, send
from trapline.testweb.server import Server


def main() -> None:
    guard_stderr()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business; it then closes our input
    told = receive(sys.stdin.buffer)
    try:
        server = Server(*told)
    except ConfigError as error:
        send(sys.stdout.buffer, str(error))
        return
    uvloop.run(_serve(server))


async def _serve(server: Server) -> None:
    await server.start()
    send(sys.stdout.buffer, (server.web.port, server.web.began))
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    # A thread, for a pipe in an event loop would be made non-blocking, and with it the parent's end.
    threading.Thread(target=_listen, args=(server, loop, ended), daemon=True).start()
    await ended.wait()
    await server.stop()


def _listen(server: Server, loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """Each question is answered by the loop, whose log it is."""
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
