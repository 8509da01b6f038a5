"""Two changes to a comment stay exact if one change overtakes the other between any two calls.

The random histories of `test_counting_machine` contain many pairs of overlapping changes; this test
covers all pairs. One order of the two changes must explain both outcomes and the stored rows.
"""

import contextlib
import itertools

import pytest

from tests.support.histories.operator_steps import Wish
from tests.system import test_counting_machine

pytestmark = pytest.mark.slow

# All steps concern the first comment, which the first author wrote; a different author votes.
VERBS = {
    "reply": Wish("post", 9, 0, 1),
    "edit": Wish("edit", 0, 1, 0),
    "retract": Wish("retract", 0, 1, 0),
    "vote": Wish("vote", 0, 2, 2),
    "count": Wish("count", 0, 0, 1),
    "place": Wish("place", 0, 0, 2),
    "file": Wish("file", 0, 1, 0),
    "walk": Wish("walk", 0, 0, 0),
}
MOST_CALLS = 12


@pytest.mark.parametrize("slow", VERBS)
def test_an_order_explains_any_two_changes_of_which_one_overtakes_the_other(slow: str) -> None:
    for fast, wish in VERBS.items():
        for call in itertools.count(1):
            machine = test_counting_machine.Machine()
            with contextlib.closing(machine.stack):
                machine.take(Wish("post", 0, 0, 0))
                machine.take(Wish("post", 9, 0, 0))
                # Prepare a vote to count and a recategorization to continue.
                machine.take(Wish("vote", 0, 1, 2))
                machine.take(Wish("file", 0, 2, 0))
                machine.take_overtaken(VERBS[slow], wish, call)
                machine.everything_stored_equals_the_ledger()
                if not machine.was_overtaken:
                    break
            assert call < MOST_CALLS
        assert call > 2, fast
