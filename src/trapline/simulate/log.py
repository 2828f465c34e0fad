"""The fetch log of a simulated crawl: one row a fetch, in order of completion."""

from typing import NamedTuple

import numpy as np

from trapline.frontier.layout import Array


class Log(NamedTuple):
    page: Array  # int32
    visit: Array  # int32: number of the visit, from 0
    start: Array  # of a visit's first page: when the visit began; else when it was asked for
    first_byte: Array
    end: Array
    result: Array  # uint8: FETCHED, FAILED or REFUSED


def new_log(rows: int) -> Log:
    return Log(
        page=np.zeros(rows, np.int32),
        visit=np.zeros(rows, np.int32),
        start=np.zeros(rows),
        first_byte=np.zeros(rows),
        end=np.zeros(rows),
        result=np.zeros(rows, np.uint8),
    )
