"""WebGraph's compression, written bit by bit from the description in the paper: the slow twin of the decoder.

It chooses references, blocks and intervals at random instead of by size, so that every form occurs.

"""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

CODES = {
    "OUTDEGREES": ("GAMMA", "DELTA"),
    "REFERENCES": ("UNARY", "GAMMA", "DELTA"),
    "BLOCK_COUNT": ("GAMMA", "DELTA", "UNARY"),
    "BLOCKS": ("GAMMA", "DELTA"),
    "RESIDUALS": ("ZETA", "GAMMA", "DELTA", "NIBBLE"),
}


class Plan(NamedTuple):
    codes: dict[str, str]
    window: int = 7
    least_interval: int = 3
    zeta_k: int = 3


def unary(number: int) -> str:
    return "0" * number + "1"


def gamma(number: int) -> str:
    binary = f"{number + 1:b}"
    return unary(len(binary) - 1) + binary[1:]


def delta(number: int) -> str:
    binary = f"{number + 1:b}"
    return gamma(len(binary) - 1) + binary[1:]


def zeta(number: int, k: int) -> str:
    power = (len(f"{number + 1:b}") - 1) // k
    above, size = number + 1 - 2 ** (power * k), 2 ** ((power + 1) * k) - 2 ** (power * k)
    # Minimal binary code: the first of `size` values have one bit less.
    width = (size - 1).bit_length()
    short = 2**width - size
    if not width:
        return unary(power)
    tail = f"{above:0{width - 1}b}" if above < short else f"{above + short:0{width}b}"
    return unary(power) + tail


def nibble(number: int) -> str:
    digits = f"{number:o}"
    return "".join(f"{int(place == len(digits) - 1)}{int(digit):03b}" for place, digit in enumerate(digits))


def coded(number: int, code: str, k: int) -> str:
    if code == "ZETA":
        return zeta(number, k)
    return {"UNARY": unary, "GAMMA": gamma, "DELTA": delta, "NIBBLE": nibble}[code](number)


def natural(number: int) -> int:
    return 2 * number if number >= 0 else -2 * number - 1


def encode(rows: Sequence[Sequence[int]], plan: Plan, chance: Random) -> str:
    return "".join(page_bits(page, rows, plan, chance) for page in range(len(rows)))


def page_bits(page: int, rows: Sequence[Sequence[int]], plan: Plan, chance: Random) -> str:
    def field(name: str, number: int) -> str:
        return coded(number, plan.codes.get(name, CODES[name][0]), plan.zeta_k)

    links = sorted(rows[page])
    bits = field("OUTDEGREES", len(links))
    if not links:
        return bits
    reference = chance.randint(0, min(plan.window, page)) if plan.window else 0
    left = set(links)
    if plan.window:
        bits += field("REFERENCES", reference)
    if reference:
        lengths = copy_blocks(sorted(rows[page - reference]), left)
        bits += field("BLOCK_COUNT", len(lengths))
        bits += "".join(field("BLOCKS", length - (place > 0)) for place, length in enumerate(lengths))
        left -= set(rows[page - reference])
    if left and plan.least_interval:
        bits += interval_bits(page, left, plan, chance)
    before = page
    for place, target in enumerate(sorted(left)):
        bits += field("RESIDUALS", natural(target - page) if place == 0 else target - before - 1)
        before = target
    return bits


def copy_blocks(other: Sequence[int], links: set[int]) -> list[int]:
    """Lengths of runs copied, skipped, copied, ... The last run is not written."""
    lengths, copying = [0], True
    for target in other:
        if (target in links) != copying:
            lengths.append(0)
            copying = not copying
        lengths[-1] += 1
    return lengths[:-1]


def interval_bits(page: int, left: set[int], plan: Plan, chance: Random) -> str:
    """Encode some intervals, and remove them from `left`."""
    runs: list[list[int]] = []
    for target in sorted(left):
        if runs and runs[-1][-1] == target - 1:
            runs[-1].append(target)
        else:
            runs.append([target])
    chosen = [run for run in runs if len(run) >= plan.least_interval and chance.random() < 0.8]
    bits, before = gamma(len(chosen)), page
    for place, run in enumerate(chosen):
        bits += gamma(natural(run[0] - page) if place == 0 else run[0] - before - 1)
        bits += gamma(len(run) - plan.least_interval)
        before = run[-1] + 1
        left.difference_update(run)
    return bits


def write(folder: Path, rows: Sequence[Sequence[int]], plan: Plan, chance: Random, name: str = "web") -> Path:
    bits = encode(rows, plan, chance)
    data = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    flags = " | ".join(f"{field}_{code}" for field, code in plan.codes.items())
    (folder / f"{name}.graph").write_bytes(data)
    (folder / f"{name}.properties").write_text(
        "#BVGraph properties\ngraphclass=it.unimi.dsi.webgraph.BVGraph\nversion=0\n"
        f"nodes={len(rows)}\narcs={sum(map(len, rows))}\nwindowsize={plan.window}\n"
        f"minintervallength={plan.least_interval}\nzetak={plan.zeta_k}\ncompressionflags={flags}\n"
    )
    return folder / f"{name}.graph"
