"""When the bytes of an answer arrive: at the bandwidth of the site, in the windows of TCP's slow start.

A pure function of sizes and times, without a clock. It serves what `trapline.servers.slow_start` computes: the last byte
arrives size / rate + stall_s after the first moment. This module does not import it, because compiled code would slow the
start of the server process; a test compares the two.
"""

import math
from collections.abc import Iterator

PIECE_BYTES = 65_536  # a loopback socket takes this much at once, so an answer ends when its last piece is handed over
TICK_S = 0.05  # between two pieces of a paced answer


def arrivals(
    size: int, rate: float, round_trip_s: float = 0.0, window: float = 0.0, closing_s: float = 0.0
) -> Iterator[tuple[float, int]]:
    """Yield when the pieces of an answer arrive, in seconds, and their sizes in bytes.

    `window` is the present window of the connection; 0: no slow start. The last byte is held back for `closing_s`: a client
    that knows the length of an answer would not wait for the end of the connection.

    >>> list(arrivals(7_000, rate=10_000.0, round_trip_s=1.0, window=2_000.0))
    [(0.2, 2000), (1.4, 4000), (2.05, 500), (2.1, 500)]
    >>> list(arrivals(100, rate=math.inf, closing_s=0.5))
    [(0.0, 99), (0.5, 1)]
    """
    begins, sent = 0.0, 0
    if window > 0:
        while size - sent > window and window / rate < round_trip_s:
            piece = int(window)
            yield begins + piece / rate, piece
            begins, sent, window = begins + round_trip_s, sent + piece, 2 * window
    step = PIECE_BYTES if rate == math.inf else max(1, int(rate * TICK_S))
    held = 1 if closing_s else 0
    first = sent
    while sent < size - held:
        piece = min(step, size - held - sent)
        sent += piece
        yield begins + (sent - first) / rate, piece
    if sent < size:
        yield begins + (size - first) / rate + closing_s, size - sent
