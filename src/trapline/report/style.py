"""How the curves of one picture are told apart: by colour, stroke and marker together, for eyes and prints of any kind.

It knows numbers of curves and nothing of what they show. The same looks serve the PNG and the HTML page.
"""

from typing import NamedTuple

# Okabe and Ito's colours, told apart with any colour vision, without their yellow, which white paper swallows.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1A1A1A")
# The same on a dark page: lighter, and in the same order.
COLOURS_ON_DARK = ("#4C9BE8", "#F0814A", "#2FC49A", "#E39AC2", "#F2B632", "#A3DCFF", "#F0F0F0")
STROKES: tuple[tuple[float, ...], ...] = ((), (7, 2.5), (7, 2.5, 1.5, 2.5), (2.5, 2))  # lengths on, off, in points
MARKERS = "osD^vPX*"  # matplotlib's names


class Look(NamedTuple):
    """Numbers of a colour, a stroke and a marker."""

    colour: int
    stroke: int
    marker: int


def look(index: int) -> Look:
    """Of the curve with this number. 28 curves differ in colour or stroke, 56 at least in the marker.

    >>> look(0), look(7)
    (Look(colour=0, stroke=0, marker=0), Look(colour=0, stroke=1, marker=7))
    """
    again, colour = divmod(index, len(COLOURS))
    return Look(colour, (colour + again) % len(STROKES), index % len(MARKERS))
