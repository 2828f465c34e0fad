"""The short form of every section of docs/proof.md: every claim holds."""

import pytest

from tests.effort import slow
from tests.proof.__main__ import NAMES, section_of

# Their short form would repeat tests that run anyway.
WHOLE_ONLY = {"suite", "scheduling"}
SLOW = {"durability", "adapters", "politeness", "goals", "soak", "scale", "surfaces", "dashboard", "hostile"}
SECTIONS = [pytest.param(name, marks=slow if name in SLOW else ()) for name in NAMES if name not in WHOLE_ONLY]


@pytest.mark.parametrize("name", SECTIONS)
def test_every_claim_of_the_section_holds(name: str) -> None:
    findings = list(section_of(name).run(False))
    assert findings
    assert [finding for finding in findings if finding.holds is False] == []
