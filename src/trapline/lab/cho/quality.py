"""Experiment 4 of `cho`: the quality of the pages fetched first, by the number of exchanges of links between partitions.

It also counts the messages of a coordinator that assigns sites or pages. With `x` exchanges each partition sends its links
every time that it has fetched 1/(x + 1) of its share of the pages, so with one exchange in the middle, and when it has
nothing else to do. 0 exchanges: firewall mode. `always`: at the end of every step, which is 1/256 of its share, or a page.
"""

from collections.abc import Mapping
from itertools import pairwise

from trapline.confidence import estimate
from trapline.lab.cho.crawled_web import Setting
from trapline.lab.cho.measures import ChoStudy, Curve, Measure, Measured, item, quality, sent, times
from trapline.lab.paper import PaperClaim, PaperItem, Values, at_least, at_most, differences, every, more, not_worse

# Shares of the pages after which quality is measured. The paper has 500 K, 2 M and 8 M of 40 M pages (published, to the best of our
# knowledge).
SIZES = {"1/80": 80, "1/20": 20, "1/5": 5}
SMALL, LARGE = "1/80", "1/5"
ORDER = "backlink-count"
ORDERS = ("larger-sites-first", "opic", ORDER)
ORDERS_AT, ORDERS_EXCHANGES = (1, 4, 16, 64), 64
# Share of the quality of one process; number of exchanges: "a few dozen to a hundred", to the best of our knowledge
ENOUGH, NOT_MORE = 0.99, 100
SAME = 0.02  # margin of "needs no exchange"; ours
_EQUAL = 1e-9  # differences up to this are none
ALWAYS = "always"
_LEAST_PAGES = 20  # least pages of a partition: with fewer, the crawl is over before links could be sent


def exchanging(study: ChoStudy, n: int, exchanges: int | None, share: int, order: str = ORDER) -> Setting:
    """Return the setting of a crawl with n partitions. `exchanges`: None means always. `share`: one in `share` pages is fetched."""
    most = max(1, study.pages // share)
    if exchanges == 0 or n == 1:
        return Setting("firewall", n, strategy=order, most=most)
    every = 1 if exchanges is None else max(1, most // (n * (exchanges + 1)))
    return Setting("exchange", n, strategy=order, most=most, every_pages=every)


def tried(study: ChoStudy, share: int) -> list[int]:
    """Return the numbers of partitions for which every partition has enough pages; 2 is always among them."""
    return [n for n in study.scale.some_partitions if n == 2 or has_work(study, n, share)]


def has_work(study: ChoStudy, n: int, share: int) -> bool:
    """Return whether each of n partitions fetches enough pages."""
    return study.pages // share >= n * _LEAST_PAGES


def experiment(study: ChoStudy) -> PaperItem:
    """Run the experiment."""
    by_size = {size: _qualities(study, share) for size, share in SIZES.items()}
    sending = {f"{n} partitions": _over_exchanges(study, n, SIZES[LARGE], sent) for n in tried(study, SIZES[LARGE])}
    names = _names(study)
    charts = [
        Measured(f"4{letter}", f"After {size} of the pages", "exchanges", "quality", curves, names)
        for letter, (size, curves) in zip("abc", by_size.items(), strict=True)
    ]
    orders, messages = _orders(study), _coordinator_messages(study)
    charts += [
        Measured("4d", f"What it takes, after {LARGE} of the pages", "exchanges", "URLs sent per page", sending, names),
        Measured("4e", f"Other orders, after {LARGE} of the pages", "partitions", "quality", orders),
        Measured("4f", f"A coordinator, {LARGE} of the pages", "partitions", "its messages per page", messages),
    ]
    judged = {size: curves for size, curves in by_size.items() if has_work(study, 2, SIZES[size])}
    of_orders = _of_orders(orders) if has_work(study, ORDERS_AT[-1], SIZES[LARGE]) else []
    verdicts = [*_of_qualities(study, judged), *_of_sending(study, sending), *of_orders, *_of_coordinator(messages)]
    notes = [*_fewest(study, judged), *_left_out(study)]
    return item(4, f"Quality ({ORDER}) by exchanges", study, charts, verdicts, notes)


def _left_out(study: ChoStudy) -> list[str]:
    few = f"partitions that fetch fewer than {_LEAST_PAGES} pages have nothing to send."
    notes = [
        f"Not judged after {size} of the pages: {few}" for size, share in SIZES.items() if not has_work(study, 2, share)
    ]
    most = ORDERS_AT[-1]
    return notes + (
        [] if has_work(study, most, SIZES[LARGE]) else [f"Other orders are not judged with {most} partitions: {few}"]
    )


def _names(study: ChoStudy) -> dict[float, str]:
    return {float(at): name for at, name in enumerate([*map(str, study.scale.exchanges), ALWAYS])}


def _over_exchanges(study: ChoStudy, n: int, share: int, measure: Measure) -> Curve:
    numbers = [*study.scale.exchanges, None]
    return {float(at): study.values(exchanging(study, n, number, share), measure) for at, number in enumerate(numbers)}


def _qualities(study: ChoStudy, share: int) -> dict[str, Curve]:
    """Return the quality by exchanges for each number of partitions, and for one process with the same seeds."""
    curves: dict[str, Curve] = {}
    for n in tried(study, share):
        curves[f"{n} partitions"] = _over_exchanges(study, n, share, quality)
        alone = study.values(exchanging(study, n, 0, share).alone, quality)
        curves[f"1, seeds of {n}"] = {float(at): alone for at in range(len(study.scale.exchanges) + 1)}
    return curves


def _orders(study: ChoStudy) -> dict[str, Curve]:
    share = SIZES[LARGE]
    return {
        f"{order}, {label}": {
            float(n): study.values(exchanging(study, n, exchanges, share, order), quality) for n in ORDERS_AT
        }
        for order in ORDERS
        for label, exchanges in (("alone", 0), (f"{ORDERS_EXCHANGES} exchanges", ORDERS_EXCHANGES))
    }


def _coordinator_messages(study: ChoStudy) -> dict[str, Curve]:
    few = [n for n in study.crossing if n <= 8]
    most = max(1, study.pages // SIZES[LARGE])
    return {
        f"by {grain}": {
            float(n): study.values(
                Setting("dynamic", n, grain=grain, most=most, every_pages=max(1, most // (n * 256))),
                lambda found: found.coordinator_messages,
            )
            for n in few
        }
        for grain in ("site", "page")
    }


def _of_qualities(study: ChoStudy, by_size: Mapping[str, Mapping[str, Curve]]) -> list[PaperClaim]:
    large = by_size[LARGE]
    last = float(len(study.scale.exchanges))
    enough = max(number for number in study.scale.exchanges if number <= NOT_MORE)
    always = {
        f"{n} partitions": not_worse(large[f"{n} partitions"][last], _alone(large, n), SAME) for n in _numbers(large)
    }
    return [
        *(_of_early(by_size[SMALL], large) if SMALL in by_size else []),
        every(
            f"Exchanging always is as good as one process after {LARGE} of the pages: at most {SAME:g} behind",
            "as good",
            always,
        ),
        *(_few_are_enough(study, size, curves, enough) for size, curves in by_size.items()),
    ]


def _of_early(small: Mapping[str, Curve], large: Mapping[str, Curve]) -> list[PaperClaim]:
    most = max(_numbers(small))
    early, late = (differences(_alone(curves, most), curves[f"{most} partitions"][0.0]) for curves in (small, large))
    shrinks = (
        f"The difference shrinks: with {most} partitions it is smaller after {LARGE} than after {SMALL} of the pages"
    )
    return [
        *_worse_with_more(small),
        at_least(
            f"{most} partitions without exchange do worse than one process after {SMALL} of the pages", "worse", early
        ),
        at_least(shrinks, "vanishes", differences(early, late)),
    ]


def _numbers(curves: Mapping[str, Curve]) -> list[int]:
    return [int(name.split()[0]) for name in curves if name.endswith("partitions")]


def _alone(curves: Mapping[str, Curve], n: int) -> Values:
    return curves[f"1, seeds of {n}"][0.0]


def _worse_with_more(curves: Mapping[str, Curve]) -> list[PaperClaim]:
    alone = {n: curves[f"{n} partitions"][0.0] for n in _numbers(curves)}
    parts = {f"{a} and {b}": more(alone[a], alone[b]) for a, b in pairwise(alone)}
    return (
        [every(f"Without exchange more partitions do worse after {SMALL} of the pages", "worse", parts)]
        if parts
        else []
    )


def _few_are_enough(study: ChoStudy, size: str, curves: Mapping[str, Curve], enough: int) -> PaperClaim:
    """Judge whether `enough` exchanges reach the quality of one process: the most that were tried up to NOT_MORE."""
    at = float(list(study.scale.exchanges).index(enough))
    parts = {f"{n} partitions": _reaches(curves[f"{n} partitions"][at], _alone(curves, n)) for n in _numbers(curves)}
    text = f"{enough} exchanges reach {ENOUGH:.0%} of the quality of one process after {size} of the pages"
    return every(text, "a few dozen to a hundred are enough", parts)


def _reaches(ours: Values, alone: Values) -> PaperClaim:
    return at_least("", "", differences(ours, times(alone, ENOUGH)), -_EQUAL)


def _fewest(study: ChoStudy, by_size: Mapping[str, Mapping[str, Curve]]) -> list[str]:
    """Return notes on the smallest number of exchanges whose mean quality is 99 % of the quality of one process."""
    names, notes = _names(study), []
    for size, curves in by_size.items():
        found = []
        for n in _numbers(curves):
            curve, goal = curves[f"{n} partitions"], ENOUGH * estimate(_alone(curves, n)).mean
            enough = [names[at] for at, values in curve.items() if estimate(values).mean >= goal]
            found.append(f"{n} partitions {enough[0] if enough else 'none of these'}")
        notes.append(
            f"Fewest exchanges with {ENOUGH:.0%} of the quality of one process after {size} of the pages: {', '.join(found)}."
        )
    return notes


def _of_sending(study: ChoStudy, curves: Mapping[str, Curve]) -> list[PaperClaim]:
    """Judge whether twice the exchanges send less than twice the URLs.

    Two numbers of exchanges are not compared if both mean an exchange after every page.
    """
    points = [(float(at), number) for at, number in enumerate(study.scale.exchanges) if number > 0]
    parts = {
        f"{n} partitions, {few} to {many}": more(times(curve[a], many / few), curve[b])
        for n, curve in zip(_numbers(curves), curves.values(), strict=True)
        for (a, few), (b, many) in pairwise(points)
        if exchanging(study, n, few, SIZES[LARGE]) != exchanging(study, n, many, SIZES[LARGE])
    }
    return [every("URLs sent grow less than linearly with exchanges", "less than linearly", parts)]


def _of_orders(curves: dict[str, Curve]) -> list[PaperClaim]:
    many, exchanged = float(ORDERS_AT[-1]), f"{ORDERS_EXCHANGES} exchanges"
    gains = {
        order: differences(curves[f"{order}, {exchanged}"][many], curves[f"{order}, alone"][many]) for order in ORDERS
    }
    first, *others = ORDERS
    return [
        at_most(f"{first.capitalize()} needs no exchange with 64: gain at most {SAME:g}", "none (thesis 4.6)", gains[first], SAME),
        *(at_least(f"{order.capitalize()} gains by exchange with 64 partitions", "gains", gains[order]) for order in others),
    ]  # fmt: skip


def _of_coordinator(curves: dict[str, Curve]) -> list[PaperClaim]:
    site, page = curves["by site"], curves["by page"]
    parts = {f"{n:g} partitions": more(page[n], site[n]) for n in site}
    return [every("A coordinator that assigns pages gets more messages than one that assigns sites", "more", parts)]
