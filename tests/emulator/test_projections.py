"""Claims about what results hold: whole entities, keys, or projected values of an index."""

import pytest

FULL, PROJECTION, KEY_ONLY = 1, 2, 3


@pytest.mark.parametrize(
    ("fields", "result_type", "names"),
    [
        ({}, FULL, ["a", "v"]),
        ({"projection": ["a"]}, PROJECTION, ["a"]),
        ({"projection": ["a"], "distinct": ["a"]}, PROJECTION, ["a"]),
        ({"distinct": ["a"]}, FULL, ["a", "v"]),
        ({"keys_only": True}, KEY_ONLY, []),
    ],
    ids=str,
)
def test_a_batch_says_what_its_results_hold(service, fields, result_type, names):
    service.put(service.key("T", 1), a=1, v=2)
    batch = service.batch(service.query(**fields))
    assert batch.entity_result_type == result_type
    assert sorted(batch.entity_results[0].entity.properties) == names


def test_who_lacks_a_projected_value_is_left_out(service, unindexed):
    service.put(service.key("T", 1), a=1, b=1)
    service.put(service.key("T", 2), a=1)
    service.put(service.key("T", 3), a=1, b=unindexed(1))
    service.put(service.key("T", 4), a=1, b=None)
    service.put(service.key("T", 5), a=1, b=[2, unindexed(3)])
    query = service.query(projection=["a", "b"])
    found = [service.plain(each.entity) for each in service.results(query)]
    assert found == [{"a": 1, "b": None}, {"a": 1, "b": 1}, {"a": 1, "b": 2}]
    assert service.names(projection=["b"]) == [4, 1, 5]


def test_only_array_values_that_meet_the_inequalities_are_projected(service):
    service.put(service.key("T", 1), a=[1, 3, 5, 7], b=["x", "y"])
    within = (("a", ">", 1), ("a", "<", 7))
    single = service.results(service.query("T", *within, projection=["a"]))
    assert [service.plain(each.entity) for each in single] == [{"a": 3}, {"a": 5}]
    both = service.results(service.query("T", *within, projection=["a", "b"]))
    assert [tuple(service.plain(each.entity).values()) for each in both] == [
        (3, "x"), (3, "y"), (5, "x"), (5, "y"),
    ]  # fmt: skip


def test_without_an_order_results_come_as_the_index_lists_the_projected_properties(service):
    """The index is of a, then b; the query may name them in any order."""
    for number, (a, b) in enumerate([(2, "x"), (1, "z"), (2, "a"), (1, "b")], 1):
        service.put(service.key("T", number), a=a, b=b)
    for names in (["a", "b"], ["b", "a"]):
        assert service.names(projection=names) == [4, 2, 3, 1]


def test_keys_only_is_a_projection_of_the_key_alone(service, refused):
    service.put(service.key("T", 1), a=1)
    assert service.names(projection=["__key__"]) == [1]
    for names in (["__key__", "a"], ["a", "__key__"], ["__key__", "__key__"]):
        with refused("INVALID_ARGUMENT"):
            service.names(projection=names)
