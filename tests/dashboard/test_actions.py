"""An order from the browser is a confirmed JSON object with known values; anything else is refused."""

import pytest
from starlette.exceptions import HTTPException

from trapline.dashboard.actions import read_order


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{}", b"[" * 100_000, b'{"do": "pause"}', b'{"do": "pause", "confirm": 1}', b'{"do": "export_sites", "confirm": true}',
        b'{"do": "block", "confirm": true}', b'{"do": "block", "site": [], "confirm": true}',
        b'{"do": "delay", "site": "a", "confirm": true}', b'{"do": "delay", "site": "a", "delay_s": -1, "confirm": true}',
        b'{"do": "delay", "site": "a", "delay_s": NaN, "confirm": true}', b'{"do": "add_seeds", "urls": "a", "confirm": true}',
        b'{"do": "add_seeds", "urls": [1], "confirm": true}', b'{"do": ["pause"], "confirm": true}',
    ],
)  # fmt: skip
def test_what_is_no_confirmed_order_is_refused(body: bytes) -> None:
    with pytest.raises(HTTPException) as refused:
        read_order(body)
    assert refused.value.status_code == 400 and refused.value.detail


def test_orders_carry_only_their_values() -> None:
    assert read_order(b'{"do": "pause", "site": "a", "confirm": true}') == ("pause", {})
    delay = b'{"do": "delay", "site": " a.example ", "delay_s": 5, "urls": [], "confirm": true}'
    assert read_order(delay) == ("delay", {"site": "a.example", "delay_s": 5.0})
