"""Processor time is user, system and idle time, and these are the whole time."""

import time

from trapline.processor import ProcessorTime, processor_clock


def test_work_is_user_time_and_sleep_is_idle() -> None:
    passed = processor_clock()
    while passed().user_s < 0.02:
        sum(range(10_000))
    worked = passed()
    time.sleep(0.02)
    slept = passed()
    assert worked.user_s >= 0.02 and slept.idle_s - worked.idle_s >= 0.01


def test_times_are_added_kind_by_kind() -> None:
    both = ProcessorTime(3.0, 1.0, 4.0) + ProcessorTime(1.0, 1.0, 0.0)
    assert both == ProcessorTime(4.0, 2.0, 4.0) and both.busy == 0.6
    assert ProcessorTime(0.0, 0.0, 0.0).busy is None
