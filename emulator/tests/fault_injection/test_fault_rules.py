"""Parsing fault plans: any JSON is a valid plan or is refused with the name of the wrong field."""

import json
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import errors
from datastore_emulator.fault_injection import fault_plans, fault_rules


def test_the_statuses_are_those_of_grpc() -> None:
    assert {code.name for code in grpc.StatusCode} - {"OK"} == fault_rules.STATUSES


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("{", "invalid JSON"),
        (b"\xff", "invalid JSON"),
        ([], "the plan is not an object"),
        ({"sed": 1}, "the plan has unknown fields: sed"),
        ({"seed": "1"}, "seed is not an integer"),
        ({"seed": True}, "seed is not an integer"),
        ({"rules": {}}, "rules is not a list"),
        ({"rules": [5]}, r"rules\[0\] is not an object"),
        ({"rules": [{"drop": True}, {"rpc": "commit", "drop": True}]}, r"rules\[1\].rpc is 'comm"),
        ({"rules": [{"rpc": ["Commit"], "drop": True}]}, r"rules\[0\].rpc is "),
        ({"rules": [{"point": "here", "kill": True}]}, r"rules\[0\].point is 'here', not one of c"),
        ({"rules": [{}]}, r"rules\[0\] requires one of status"),
        ({"rules": [{"oops": 1, "status": "ABORTED"}]}, "unknown fields: oops"),
        ({"rules": [{"status": "OK"}]}, r"rules\[0\].status is 'OK'"),
        ({"rules": [{"status": "ABORTED", "drop": True}]}, "has both status and drop"),
        ({"rules": [{"drop": 1}]}, r"rules\[0\].drop is not true"),
        ({"rules": [{"rpc": "RunQuery", "batch": 0}]}, "batch is not a positive integer"),
        ({"rules": [{"rpc": "RunQuery", "batch": True}]}, "batch is not a positive integer"),
        ({"rules": [{"rpc": "Lookup", "batch": 5}]}, "batch requires the rpc RunQuery"),
        ({"rules": [{"batch": 5}]}, "batch requires the rpc RunQuery"),
        (
            {"rules": [{"rpc": "RunQuery", "batch": 5, "when": "after"}]},
            "batch cannot be combined with when",
        ),
        ({"rules": [{"rpc": "RunQuery", "batch": 5, "drop": True}]}, "has both drop and batch"),
        ({"rules": [{"drop": True, "message": "x"}]}, "message requires a status"),
        ({"rules": [{"status": "ABORTED", "message": 1}]}, "message is not a string"),
        ({"rules": [{"rpc": "Commit", "point": "commit.begin"}]}, "has both rpc and point"),
        (
            {"rules": [{"point": "commit.begin", "when": "after"}]},
            "when cannot be combined with point",
        ),
        ({"rules": [{"drop": True, "when": "later"}]}, r"rules\[0\].when is 'later'"),
        ({"rules": [{"drop": True, "call": 0}]}, "call is neither"),
        ({"rules": [{"drop": True, "call": []}]}, "call is neither"),
        ({"rules": [{"drop": True, "call": True}]}, "call is neither"),
        ({"rules": [{"drop": True, "call": 1, "every": 2}]}, "has both call and every"),
        ({"rules": [{"drop": True, "every": 0}]}, "every is not a positive integer"),
        ({"rules": [{"drop": True, "times": 1.5}]}, "times is not a positive integer"),
        ({"rules": [{"drop": True, "probability": 1.1}]}, "probability is not between 0 and 1"),
        ({"rules": [{"drop": True, "probability": "x"}]}, "probability is not a number"),
        ({"rules": [{"delay": -1}]}, "delay is not between 0 and 3600"),
        ('{"rules": [{"delay": NaN}]}', "delay is not between 0 and 3600"),
    ],
)
def test_a_wrong_plan_is_refused_with_the_name_of_the_field(document: Any, complaint: str) -> None:
    with pytest.raises(errors.InvalidArgument, match=complaint):
        fault_plans.Plan.parse(document)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(sorted(fault_rules.STATUSES | fault_rules.POINTS | fault_rules.RPCS)),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["seed", "rules", *sorted(fault_rules._FIELDS)]), inner),
    max_leaves=12,
)  # fmt: skip


@given(document=JSON)
def test_any_json_is_a_plan_or_refused(document: Any) -> None:
    try:
        made = fault_plans.Plan.parse(json.dumps(document))
    except errors.InvalidArgument as refusal:
        assert refusal.message.startswith("Fault plan: ")  # noqa: PT017 - both outcomes are correct
    else:
        assert set(document) <= {"seed", "rules"}
        assert len(made.rules) == len(document.get("rules", []))
