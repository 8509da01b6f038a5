"""Claims about every two verbs of which one overtakes the other, between any two of its calls.

The random histories of `test_counting_machine` meet many pairs; here are all of them, about one
comment: some order of the two explains what both answered and what is stored.
"""

import contextlib
import itertools

import pytest

from tests.support.histories.operator_steps import Wish
from tests.system import test_counting_machine

pytestmark = pytest.mark.slow

# All about the first comment, whose author is the first one; the voter is another one.
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
                # Something to count, and somewhere to walk to.
                machine.take(Wish("vote", 0, 1, 2))
                machine.take(Wish("file", 0, 2, 0))
                machine.take_overtaken(VERBS[slow], wish, call)
                machine.what_is_stored_is_what_the_ledger_says()
                if not machine.was_overtaken:
                    break
            assert call < MOST_CALLS
        assert call > 2, fast
