"""A partition stays on the machine that has its folder. Other partitions are spread evenly over the machines."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ConfigError
from trapline.parallel.ray.machines import HOSTS, Placement, host_for, read, refuse_elsewhere, write

MACHINES = st.lists(st.sampled_from("abcdefg"), min_size=1, unique=True)


def placed(partitions: int, before: Placement, there: list[str]) -> Placement:
    for number in range(partitions):
        host = host_for(number, before, there)
        if host is not None:
            before = replace(before, hosts={**before.hosts, number: host})
    return before


@given(st.integers(0, 30), MACHINES)
def test_partitions_are_spread_evenly(partitions: int, there: list[str]) -> None:
    numbers = Counter(placed(partitions, Placement("a", False), there).hosts.values())
    assert sum(numbers.values()) == partitions
    assert max(numbers.values(), default=0) - min((numbers[host] for host in there), default=0) <= 1


@given(st.integers(1, 12), MACHINES, MACHINES, st.booleans())
def test_no_partition_leaves_its_folder(partitions: int, there: list[str], later: list[str], shared: bool) -> None:
    before = placed(partitions, Placement("a", shared), there)
    for number, host in before.hosts.items():
        found = host_for(number, before, later)
        if host in later:
            assert found == host
        else:
            assert found in later if shared else found is None


def test_the_placement_is_read_from_its_file(tmp_path: Path) -> None:
    assert read(tmp_path) is None
    refuse_elsewhere(tmp_path)
    write(tmp_path, known := Placement("a", False, {0: "a", 1: "b"}))
    assert read(tmp_path) == known
    with pytest.raises(ConfigError, match="its partition 1 is on b; resume with --ray"):
        refuse_elsewhere(tmp_path)
    write(tmp_path, replace(known, shared=True))
    refuse_elsewhere(tmp_path)
    (tmp_path / HOSTS).write_text("[]")
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path)
