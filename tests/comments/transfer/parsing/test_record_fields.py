"""Fields are read in every form with one meaning; all other values are refused by field."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.transfer import import_source
from comments.transfer.parsing import record_fields
from comments.transfer.parsing.record_fields import Fields


def of(value: object) -> Fields:
    return Fields(Path("x.json"), 5, {"a": value}, "comment")


def corrections(fields: Fields) -> list[str]:
    return [item.what for item in fields.remarks if isinstance(item, import_source.Corrected)]


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), ("x ", "x "), (12, "12"), ({"$oid": "64f0"}, "64f0")]
)
def test_a_text_is_read(value: object, text: str) -> None:
    assert of(value).text("a") == text


def test_half_a_character_in_a_text_is_replaced() -> None:
    fields = of("x\ud83d")
    assert fields.text("a") == "x\ufffd"
    assert corrections(fields) == [record_fields.HALVES]


@pytest.mark.parametrize("value", [None, "", "  ", "a\nb", "9" * 201])
def test_an_unusable_id_is_refused(value: object) -> None:
    with pytest.raises(errors.BadImport, match=r"x\.json, comment 5: "):
        of(value).id("a")


@pytest.mark.parametrize("value", [None, "", 0, "0"], ids=repr)
def test_a_root_has_no_parent(value: object) -> None:
    assert of(value).parent("a") is None
    assert of(7).parent("a") == "7"


@pytest.mark.parametrize("value", [True, 1, "true", "True", "1", "yes"], ids=repr)
def test_a_flag_is_set(value: object) -> None:
    assert of(value).is_true("a")


@pytest.mark.parametrize("value", [None, False, 0, "", "false", "0"], ids=repr)
def test_a_flag_is_not_set(value: object) -> None:
    assert not of(value).is_true("a")


@pytest.mark.parametrize(
    ("value", "count"),
    [(None, 0), ("", 0), (3, 3), ("3", 3), (Decimal("3.0"), 3), (-2, 0)],
    ids=repr,
)
def test_a_number_of_votes_is_read(value: object, count: int) -> None:
    fields = of(value)
    assert fields.count("a") == count
    assert corrections(fields) == ([record_fields.NEGATIVE] if value == -2 else [])


@pytest.mark.parametrize(
    ("value", "website", "is_corrected"),
    [
        ("garden.example", "http://garden.example", True),
        ("garden.example:8080/ada?x=1", "http://garden.example:8080/ada?x=1", True),
        ("https://garden.example", "https://garden.example", False),
        ("//garden.example", "//garden.example", False),
        ("mailto:ada@garden.example", "mailto:ada@garden.example", False),
        ("ada@garden.example", "ada@garden.example", False),
        ("none", "none", False),
        ("javascript:alert(1).example", "javascript:alert(1).example", False),
    ],
)
def test_a_host_becomes_a_web_address(value: str, website: str, *, is_corrected: bool) -> None:
    fields = of(value)
    assert fields.website("a") == website
    assert corrections(fields) == ([record_fields.NO_SCHEME] if is_corrected else [])


MOMENT = datetime(2023, 8, 20, 4, 34, 34, 503000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "is_milliseconds", "correction"),
    [
        (1692506074503, True, None),
        ("1692506074503", True, None),
        (Decimal("1692506074.503"), False, None),
        (1692506074.503, False, None),
        (1692506074503, False, record_fields.MILLISECONDS),
        (Decimal("1692506074.503"), True, record_fields.SECONDS),
        ("2023-08-20T04:34:34.503Z", True, None),
        ("2023-08-20 12:34:34.503+08:00", True, None),
        ("2023-08-20 04:34:34.503", True, record_fields.NO_ZONE),
        ("2023-08-20 12:34:34.503 +0800 CST", True, None),
        ("2023-08-20 12:34:34.503000 +0800 +08 m=+0.5", True, None),
        ("2023-08-20 04:34:34.503 +0000", False, None),
        ({"__type": "Date", "iso": "2023-08-20T04:34:34.503Z"}, True, None),
        ({"$date": "2023-08-20T04:34:34.503Z"}, True, None),
        ({"$date": {"$numberLong": "1692506074503"}}, True, None),
    ],
    ids=repr,
)
def test_a_time_is_read(value: object, correction: str | None, *, is_milliseconds: bool) -> None:
    fields = of(value)
    assert fields.moment("a", milliseconds=is_milliseconds) == MOMENT
    assert corrections(fields) == ([correction] if correction else [])


@given(
    st.datetimes(min_value=datetime(1974, 1, 1), max_value=datetime(2100, 1, 1)),  # noqa: DTZ001
    st.integers(-12, 14),
)
def test_each_form_of_a_time_means_the_same(naive: datetime, hours: int) -> None:
    moment = naive.replace(microsecond=0, tzinfo=UTC)
    seconds = int(moment.timestamp())
    shifted = moment.astimezone(timezone(timedelta(hours=hours)))
    for value in (seconds, seconds * 1000, shifted.isoformat(), str(seconds)):
        assert of(value).moment("a") == moment


@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_time_is_none_or_refused(value: object) -> None:
    assert of(value).moment("a") is None
    with pytest.raises(errors.BadImport, match='"b" is missing'):
        of(value).required_moment("b", "a")


def test_data_that_is_left_out_is_noted_where_there_is_some() -> None:
    fields = Fields(Path("x"), 3, {"ip": "192.0.2.1", "ua": "", "avatar": None})
    fields.leave_out({"ip": "IP addresses", "ua": "user agents", "avatar": "avatars"})
    assert fields.remarks == [import_source.LeftOut(3, "IP addresses")]


def test_fields_that_are_not_known_are_noted_by_their_names() -> None:
    values = {"ip": "192.0.2.1", "mood": "glad", "text": "x", "rank": None, "x" * 99: 1}
    fields = Fields(Path("x"), 3, values)
    fields.leave_out({"ip": "IP addresses"}, {"text"})
    noted = [item.what for item in fields.remarks if isinstance(item, import_source.LeftOut)]
    assert noted == ["IP addresses", 'values of "mood"', f'values of "{"x" * 40}"']


@pytest.mark.parametrize(
    ("value", "size"),
    [(None, 0), ("", 0), ([], 0), ("[]", 0), ('"[]"', 0), (["a", "b", "a"], 2), ('["a", 1]', 2)],
    ids=repr,
)
def test_the_items_of_a_list_are_counted(value: object, size: int) -> None:
    assert of(value).size("a") == size


def test_a_required_text_has_no_blanks_around_it() -> None:
    assert of(" x ").required_text("a") == "x"


@pytest.mark.parametrize(("value", "score"), [(None, 0), ("", 0), (-3, -3), ("-4", -4), (2.0, 2)])
def test_a_score_can_be_negative(value: object, score: int) -> None:
    fields = of(value)
    assert fields.score("a") == score
    assert fields.remarks == []


def test_the_objects_of_a_list_share_the_records_place_and_remarks() -> None:
    fields = of([{"b": 1}, {"b": "x\ud83d"}])
    assert [each.text("b") for each in fields.items("a")] == ["1", "x\ufffd"]
    assert corrections(fields) == [record_fields.HALVES]
    assert [each.number for each in fields.items("a")] == [5, 5]
    assert of(None).items("a") == []


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("required_text", " "),
        ("size", {"x": 1}),
        ("size", 7),
        ("size", "["),
        ("size", "[" * 100_000),
        ("size", '"7"'),
        ("moment", "2023-08-20 04:34:34 +0800 !"),
        ("items", {}),
        ("items", [1]),
        ("items", "x"),
        ("score", "1e3"),
        ("score", -(10**10)),
        ("text", []),
        ("text", True),
        ("text", {"x": 1}),
        ("id", 1.5),
        ("is_true", "perhaps"),
        ("is_true", 2),
        ("count", "many"),
        ("count", 1.5),
        ("count", True),
        ("count", 10**10),
        ("count", float("inf")),
        ("moment", True),
        ("moment", "yesterday"),
        ("moment", [2023]),
        ("moment", 10**17),
        ("moment", float("inf")),
        ("moment", "2023-13-01"),
    ],
    ids=repr,
)
def test_a_value_of_another_kind_is_refused_with_its_place(method: str, value: object) -> None:
    with pytest.raises(errors.BadImport, match=r"x\.json, comment 5: "):
        getattr(of(value), method)("a")


@pytest.mark.parametrize(
    ("value", "votes"), [(None, (0, 0)), (3, (3, 0)), ("-2", (0, 2)), (0.0, (0, 0))]
)
def test_a_sum_of_votes_becomes_votes_of_one_kind(value: object, votes: tuple[int, int]) -> None:
    fields = of(value)
    assert fields.balance("a") == votes
    assert fields.remarks == []


@pytest.mark.parametrize("value", ["many", 1.5, True, -(10**10), 10**10])
def test_an_impossible_sum_of_votes_is_refused(value: object) -> None:
    with pytest.raises(errors.BadImport, match=r'comment 5: "a" is not a (whole number|number of)'):
        of(value).balance("a")


def test_a_whole_number_in_floating_point_is_a_text_without_its_decimal_point() -> None:
    fields = of(12.0)
    assert fields.text("a") == "12"
    assert corrections(fields) == [record_fields.WHOLE]


@pytest.mark.parametrize("value", [1.5, 1e300, float(1 << 53)])
def test_other_numbers_in_floating_point_are_not_texts(value: float) -> None:
    with pytest.raises(errors.BadImport, match=r'"a" is not a text'):
        of(value).text("a")
