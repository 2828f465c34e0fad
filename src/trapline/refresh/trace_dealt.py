"""The histories of a trace, dealt to the pages of a web that it was not recorded on: the same for the same trace and seed, whoever
asks, so that testweb and the simulator have the same web. It knows no graph."""

import numpy as np

from trapline.refresh.trace import Floats, Trace

_DEALING = 11  # stream of chance
_BEYOND = 1.0 + 1e-6  # a round is so much longer than the trace: its last update, at its very end, belongs to it


def dealt(trace: Trace, pages: int, seed: int) -> list[Floats]:
    """A history for each page. One that must serve a second page is turned by a part of its length: the two do not change together."""
    rng = np.random.default_rng((seed, _DEALING))
    found: list[Floats] = []
    while len(found) < pages:
        turns = bool(found)
        for one in rng.permutation(trace.pages)[: pages - len(found)].tolist():
            own = trace.at_s[trace.offsets[one] : trace.offsets[one + 1]]
            found.append(np.sort((own + rng.random() * trace.horizon_s) % trace.horizon_s) if turns else own)
    return found


def round_of(trace: Trace, speed: float) -> float:
    """Seconds after which a history begins anew, if `speed` seconds of the trace are one."""
    return trace.horizon_s * _BEYOND / speed
