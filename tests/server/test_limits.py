"""server.limits and server.holding: whom connections are counted for, and what answers keep."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server import holding, limits


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("127.0.0.1", ""),
        ("127.255.0.1", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
        ("", ""),
        ("a name", ""),
    ],
)
def test_an_address_is_counted_with_those_of_its_customer_and_this_machine_is_not(
    address: str, counted: str
) -> None:
    assert limits.peer(address) == counted


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=40))
def test_what_is_held_is_the_size_of_what_somebody_holds(steps: Any) -> None:
    pieces = [b"x" * (1 << number) for number in range(5)]
    held, holders = holding.Holding(), [0] * 5
    for is_hold, number in steps:
        if is_hold:
            held.hold([pieces[number], pieces[number]])
            holders[number] += 1
        elif holders[number]:
            held.release([pieces[number], pieces[number]])
            holders[number] -= 1
        assert held.size == sum(1 << n for n, count in enumerate(holders) if count)
