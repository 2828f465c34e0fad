"""TCP's slow start: how long a sender waits for acknowledgements while the window of its connection grows.

A sender may have one window of bytes under way. The window is `initial_window` on a new connection, and each
acknowledged byte adds a byte, so it doubles with every round trip. From the moment when a window takes longer to send
than its first acknowledgement takes to come back (window / rate >= round trip), the sender never waits.

    one round:  the window is sent at `rate`; the next one begins a round trip after this one began
    seconds of a transfer = size / rate + the stalls of all rounds but the last
    stall of a round      = round trip - window / rate

Source: Cardwell, Savage, Anderson, "Modeling TCP latency" (2000), section 2, without losses and delayed
acknowledgements. The window of a connection stays as it is between two answers; real senders shrink it after a pause.
"""

from trapline.compiled.jit import f8, helper


@helper(f8(f8, f8, f8, f8))
def stall_s(size: float, rate: float, round_trip_s: float, window: float) -> float:
    """Return the seconds for which the sender of `size` bytes waits for acknowledgements. window > 0, of now."""
    stalled = 0.0
    while size > window and window / rate < round_trip_s:
        stalled += round_trip_s - window / rate
        size -= window
        window += window
    return stalled
