"""The engine against a plain in-memory oracle: any history, the same results and status codes."""

import grpc
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from emulator import inprocess

NAMES = st.sampled_from("abcde")
NUMBERS = st.integers(0, 4)
ARRAYS = st.lists(NUMBERS, max_size=3)
PROPERTIES = st.fixed_dictionaries({"c": NUMBERS, "v": ARRAYS}, optional={"a": NUMBERS})
FILTERS = st.sampled_from(["=", "<", "<=", ">", ">="])
COMPARE = {
    "=": lambda left, right: left == right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
NULL = -1  # what an empty array is indexed as; below all numbers


def listed(entity, name):
    value = entity.get(name)
    return value if isinstance(value, list) and value else [NULL] if value == [] else [value]


class Oracle:
    """Entities in a dict; queries by looking at all of them."""

    def __init__(self):
        self.entities = {}

    def matching(self, name, operator, value):
        """Return names with the values that meet a filter, NULL being below everything."""
        found = {}
        for key, entity in self.entities.items():
            if name in entity:
                met = [each for each in listed(entity, name) if COMPARE[operator](each, value)]
                if met:
                    found[key] = met
        return found

    def ordered(self, name, *, is_descending, operator=">=", value=NULL):
        found = self.matching(name, operator, value)
        pick = max if is_descending else min
        sign = -1 if is_descending else 1
        return sorted(found, key=lambda key: (sign * pick(found[key]), key))


def status_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


class Machine(RuleBasedStateMachine):
    service_class = None
    index_yaml = None

    def __init__(self):
        super().__init__()
        self.engine = inprocess.open_engine(None, indexes=self.index_yaml)
        self.service = self.service_class(inprocess.Channel(self.engine))
        self.oracle = Oracle()
        self.open = {}  # transaction: (snapshot of the oracle, names read, whether all was read)

    def teardown(self):
        self.engine.close()

    def key(self, name):
        return self.service.key("T", name)

    def entity(self, name, properties):
        return self.service.entity(self.key(name), **properties)

    @rule(
        name=NAMES, properties=PROPERTIES, operation=st.sampled_from(["insert", "update", "upsert"])
    )
    def write(self, name, properties, operation):
        exists = name in self.oracle.entities
        expected = "OK"
        if operation == "insert" and exists:
            expected = "ALREADY_EXISTS"
        if operation == "update" and not exists:
            expected = "NOT_FOUND"
        mutation = {operation: self.entity(name, properties)}
        assert status_of(lambda: self.service.commit(mutation)) == expected
        if expected == "OK":
            self.oracle.entities[name] = properties

    @rule(name=NAMES)
    def delete(self, name):
        self.service.delete(self.key(name))
        self.oracle.entities.pop(name, None)

    @rule(name=st.sampled_from(["a", "v"]), operator=FILTERS, value=NUMBERS, down=st.booleans())
    def query(self, name, operator, value, down):
        order = [f"-{name}" if down else name]
        found = self.service.names("T", (name, operator, value), order=order)
        if operator == "=":
            assert found == sorted(self.oracle.matching(name, operator, value))
        else:
            assert found == self.oracle.ordered(
                name, is_descending=down, operator=operator, value=value
            )
        counted = self.service.count(self.service.query("T", (name, operator, value)), None)
        # Each value of an array that meets the filter counts.
        matching = self.oracle.matching(name, operator, value).values()
        assert counted == [sum(len(set(met)) for met in matching)]

    @rule(values=st.lists(NUMBERS, min_size=1), c=NUMBERS)
    def query_in_joined(self, values, c):
        expected = {name for value in values for name in self.oracle.matching("v", "=", value)}
        expected &= set(self.oracle.matching("c", "=", c))
        assert self.service.names("T", ("v", "in", values), ("c", "=", c)) == sorted(expected)

    @rule(c=NUMBERS, a=NUMBERS)
    def query_composite(self, c, a):
        found = self.service.names("T", ("c", "=", c), ("a", ">", a))
        ordered = self.oracle.ordered("a", is_descending=False, operator=">", value=a)
        assert found == [name for name in ordered if self.oracle.entities[name]["c"] == c]

    @rule(name=st.sampled_from(["a", "v"]), down=st.booleans(), size=st.integers(1, 3))
    def page_by_cursors(self, name, down, size):
        expected = self.oracle.ordered(name, is_descending=down)
        found = []
        cursor = b""
        for _ in range(len(expected) // size + 1):
            query = self.service.query(
                order=[f"-{name}" if down else name], limit=size, start_cursor=cursor
            )
            batch = self.service.batch(query)
            found += [each.entity.key.path[-1].name for each in batch.entity_results]
            cursor = batch.end_cursor
        assert found == expected

    @rule(only=st.booleans())
    @precondition(lambda self: len(self.open) < 3)
    def begin(self, only):
        options = {"read_only": {}} if only else {"read_write": {}}
        self.open[self.service.begin(**options)] = [None, {}, only]

    @rule(data=st.data(), name=NAMES)
    @precondition(lambda self: self.open)
    def read(self, data, name):
        transaction = data.draw(st.sampled_from(sorted(self.open)))
        seen = self.open[transaction]
        if seen[0] is None:
            seen[0] = dict(self.oracle.entities)
        found = self.service.get(self.key(name), transaction=transaction)
        assert found == seen[0].get(name)
        seen[1][name] = seen[0].get(name)
        assert self.service.names(transaction=transaction, keys_only=True) == sorted(seen[0])

    @rule(data=st.data(), name=NAMES, properties=PROPERTIES)
    @precondition(lambda self: self.open)
    def commit(self, data, name, properties):
        transaction = data.draw(st.sampled_from(sorted(self.open)))
        snapshot, seen, only = self.open.pop(transaction)
        mutation = {"upsert": self.entity(name, properties)}
        status = status_of(lambda: self.service.commit(mutation, transaction=transaction))
        if only:
            assert status == "INVALID_ARGUMENT"
            self.service.rollback(transaction)
            return
        # It read the set of all names, and some entities. Rewriting one as it was may abort too.
        now = self.oracle.entities
        is_stale = snapshot is not None and (
            set(snapshot) != set(now) or any(now.get(key) != old for key, old in seen.items())
        )
        if is_stale:
            assert status == "ABORTED"
        if snapshot is None:
            assert status == "OK"
        assert status in ("OK", "ABORTED")
        if status == "OK":
            now[name] = properties
        else:
            self.service.rollback(transaction)

    @rule(data=st.data())
    @precondition(lambda self: self.open)
    def roll_back(self, data):
        transaction = data.draw(st.sampled_from(sorted(self.open)))
        del self.open[transaction]
        self.service.rollback(transaction)
        assert status_of(lambda: self.service.rollback(transaction)) == "INVALID_ARGUMENT"

    @invariant()
    def everything_is_as_the_oracle_says(self):
        found = {
            each.entity.key.path[-1].name: self.service.plain(each.entity)
            for each in self.service.results(self.service.query())
        }
        assert found == self.oracle.entities


@pytest.mark.slow
def test_any_history_gives_what_the_oracle_gives(make_service, index_yaml):
    class Bound(Machine):
        pass

    Bound.service_class = make_service
    Bound.index_yaml = index_yaml
    run_state_machine_as_test(
        Bound, settings=settings(max_examples=60, stateful_step_count=30, deadline=None)
    )
