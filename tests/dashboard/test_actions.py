"""An action from the browser is a confirmed JSON object with known values; anything else is refused."""

import pytest
from starlette.exceptions import HTTPException

from trapline.dashboard.actions import read_action


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{}", b"[" * 100_000, b'{"action": "pause"}', b'{"action": "pause", "confirm": 1}',
        b'{"action": "export_sites", "confirm": true}',
        b'{"action": "block", "confirm": true}', b'{"action": "block", "site": [], "confirm": true}',
        b'{"action": "delay", "site": "a", "confirm": true}', b'{"action": "delay", "site": "a", "delay_s": -1, "confirm": true}',
        b'{"action": "delay", "site": "a", "delay_s": NaN, "confirm": true}', b'{"action": "add_seeds", "urls": "a", "confirm": true}',
        b'{"action": "add_seeds", "urls": [1], "confirm": true}', b'{"action": ["pause"], "confirm": true}',
    ],
)  # fmt: skip
def test_what_is_no_confirmed_action_is_refused(body: bytes) -> None:
    with pytest.raises(HTTPException) as refused:
        read_action(body)
    assert refused.value.status_code == 400 and refused.value.detail


def test_actions_carry_only_their_values() -> None:
    assert read_action(b'{"action": "pause", "site": "a", "confirm": true}') == ("pause", {})
    delay = b'{"action": "delay", "site": " a.example ", "delay_s": 5, "urls": [], "confirm": true}'
    assert read_action(delay) == ("delay", {"site": "a.example", "delay_s": 5.0})
