"""Test which JSON request bodies are accepted and which field each refusal names."""

import contextlib
import json
import re
from collections.abc import Iterator

import flask
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain.languages import error_texts
from comments.web.api import comment_shapes, moderation_calls, own_data
from comments.web.http import problems
from comments.web.http.decode import json_bodies

NO_PARENT = "parent must be the id of a comment, or root."
VERDICTS = "verdict must be one of: approve, hold, spam, reject."
WRONG: list[object] = [
    None, True, 0, -1, 1.5, 2**40, "", "nix", "a" * 27, "a" * 40_000, [], [1], ["a"] * 500, {},
]  # fmt: skip
PARSER = re.compile(r"[`^\\{}$*]|Expected|Invalid|regex|null|UNSET")

GOOD = {"name": "Ann", "body": "Hello", "parent": None, "website": "", "email": ""}


def body(**changes: object) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def test_a_body_becomes_its_shape() -> None:
    sent = json_bodies.decode(
        '{"name": "Änn", "body": "Hi 🎈"}'.encode(), comment_shapes.NewComment
    )
    assert sent == comment_shapes.NewComment(name="Änn", body="Hi 🎈")


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"", "body"),
        (b"[]", "body"),
        (b"null", "body"),
        (b'"text"', "body"),
        (b"{", "body"),
        (b"\xef\xbb\xbf{}", "body"),
        (b'{"name": "a", "body": "\xff"}', "body"),
        (b'{"name": "a", "body": "b"} x', "body"),
        (b'{"name": "a", "body": NaN}', "body"),
        (b'{"name": "a", "body": -Infinity}', "body"),
        (b'{"name": "a", "body": ' + b"9" * 5_000 + b"}", "body"),
        (b'{"name": "a", "name": "a", "body": "b"}', "name"),
        (b'{"name": "a", "body": "b", "n\\u0061me": "c"}', "name"),
        (b'{"name": "a"}', "body"),
        (b'{"body": "b"}', "name"),
        (b'{"name": 1, "body": "b"}', "name"),
        (b'{"name": true, "body": "b"}', "name"),
        (b'{"name": null, "body": "b"}', "name"),
        (b'{"name": ["a"], "body": "b"}', "name"),
        (b'{"name": "a\\u0000", "body": "b"}', "name"),
        (b'{"name": "a", "body": "\\ud800"}', "body"),
        (b'{"name": "a", "body": "\\udc00\\ud800"}', "body"),
        (b'{"name": "a", "body": "b", "\\u0000": 1}', "body"),
        (b'{"name": "a", "body": "b", "x": 1}', "x"),
    ],
)
def test_a_malformed_body_is_refused_by_field(data: bytes, field: str) -> None:
    with pytest.raises(errors.BadInput) as refusal:
        json_bodies.decode(data, comment_shapes.NewComment)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("value", "shape", "said"),
    [
        ({"limit": 201}, comment_shapes.ListQuery, "limit must be between 1 and 200."),
        ({"limit": 0}, own_data.OwnVotesQuery, "limit must be between 1 and 1,000."),
        ({"cursor": ""}, comment_shapes.ListQuery, "cursor is required."),
        ({"cursor": 1}, comment_shapes.ListQuery, "cursor must be of type string."),
        ({"limit": "5"}, own_data.OwnVotesQuery, "limit must be of type integer."),
        (
            {"around": "a"},
            comment_shapes.ListQuery,
            "around must be the id of a comment, or a slug such as 1-2-3.",
        ),
        (
            {"around": "A" * 26},
            comment_shapes.ListQuery,
            "around must be the id of a comment, or a slug such as 1-2-3.",
        ),
        ({"parent": "a" * 27}, comment_shapes.ListQuery, NO_PARENT),
        ({"parent": "nix"}, comment_shapes.ListQuery, NO_PARENT),
        (
            {"name": "Ann", "body": "Hi", "parent": "root"},
            comment_shapes.NewComment,
            "parent must be the id of a comment.",
        ),
        ({"value": 2}, comment_shapes.NewVote, "value must be one of: -1, 1."),
        ({"verdict": "no", "question": "q"}, moderation_calls.GivenOpinion, VERDICTS),
        ({"question": "q"}, moderation_calls.GivenOpinion, "verdict is required."),
        (
            {"threads": ["a", 1]},
            comment_shapes.ThreadList,
            "threads contains an item that is not valid.",
        ),
        (
            {"thread": "yes", "email": "a@b"},
            comment_shapes.NewSubscription,
            "thread must be of type boolean.",
        ),
        ([], comment_shapes.NewBody, "body must be of type object."),
        ({"sort": "new"}, comment_shapes.ListQuery, "sort is not a known field."),
        ({"n\new": "new"}, comment_shapes.ListQuery, "n\new is not a known field."),
        (
            {"threads": ["a"] * 101},
            comment_shapes.ThreadList,
            "threads must have at most 100 items.",
        ),
        ({"name": "Ann"}, comment_shapes.NewComment, "Write a comment first."),
    ],
)
def test_a_refusal_uses_the_callers_terms(
    value: object, shape: type[msgspec.Struct], said: str
) -> None:
    with pytest.raises(errors.BadInput) as refusal:
        json_bodies.convert(value, shape)
    assert error_texts.sentence(refusal.value) == said


def _subclasses(shape: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for below in shape.__subclasses__():
        yield below
        yield from _subclasses(below)


def test_no_refusal_shows_a_pattern_or_the_parsers_message() -> None:
    shapes = [
        shape
        for shape in _subclasses(msgspec.Struct)
        if shape.__module__.startswith("comments.web.")
        and shape.__struct_config__.forbid_unknown_fields
    ]
    refused = set()
    for shape in shapes:
        for field in msgspec.structs.fields(shape):
            for value in WRONG:
                with contextlib.suppress(msgspec.ValidationError):
                    msgspec.convert({field.encode_name: value}, shape)
                    continue
                with pytest.raises(errors.BadInput) as refusal:
                    json_bodies.convert({field.encode_name: value}, shape)
                refused.add(error_texts.sentence(refusal.value))
    assert len(refused) > 200
    assert [said for said in refused if PARSER.search(said)] == []


@pytest.mark.parametrize("parent", [0, -1, 1.5, True, 2**63, "1", "", "root", "a" * 27, "A" * 26])
def test_a_parent_must_be_a_comment_id(parent: object) -> None:
    with pytest.raises(errors.BadInput) as refusal:
        json_bodies.decode(body(parent=parent), comment_shapes.NewComment)
    assert refusal.value.field == "parent"


def test_a_comment_id_with_a_trailing_line_break_is_refused() -> None:
    with pytest.raises(errors.BadInput, match="parent"):
        json_bodies.decode(body(parent="a" * 25 + "\n"), comment_shapes.NewComment)


@pytest.mark.parametrize(
    "field",
    ["id", "hash", "created", "status", "votes", "score", "pin", "deleted", "imported", "role"],
)
def test_fields_that_only_the_server_sets_are_refused(field: str) -> None:
    with pytest.raises(errors.BadInput) as refusal:
        json_bodies.decode(body(**{field: "x"}), comment_shapes.NewComment)
    assert refusal.value.field == field


def test_an_edit_cannot_change_the_parent() -> None:
    with pytest.raises(errors.BadInput) as refusal:
        json_bodies.decode(b'{"body": "b", "parent": "%s"}' % (b"a" * 26), comment_shapes.NewBody)
    assert refusal.value.field == "parent"


@pytest.mark.parametrize("bracket", [b"[", b'{"a":'])
@pytest.mark.parametrize("depth", [9, 3_000, 60_000])
def test_deep_nesting_is_refused_before_it_is_parsed(bracket: bytes, depth: int) -> None:
    with pytest.raises(errors.BadInput, match="nested-too-deeply"):
        json_bodies.decode(bracket * depth, comment_shapes.NewComment)


def test_brackets_in_text_are_not_nesting() -> None:
    text = '[[[[[[[[[[{{{{{{{{{{ \\" [[[ \\\\'
    assert json_bodies.decode(body(body=text), comment_shapes.NewComment).body == text


@pytest.mark.parametrize("data", [b'"' * 65_535, b'"' + b'\\"' * 32_000, b"\\" * 65_535])
def test_unterminated_strings_are_scanned_once(data: bytes) -> None:
    with pytest.raises(errors.BadInput):
        json_bodies.decode(data, comment_shapes.NewComment)
    # The scan must consume unterminated strings, or it would start again after each quote.
    assert b'"' not in json_bodies._STRING.sub(b"", data)


def test_a_list_item_with_a_nul_is_refused() -> None:
    with pytest.raises(errors.BadInput) as refusal:
        json_bodies.decode(b'{"threads": ["a", "b\\u0000"]}', comment_shapes.ThreadList)
    assert refusal.value.field == "threads"


def test_a_bad_list_item_is_refused_by_the_list() -> None:
    with pytest.raises(errors.BadInput) as refusal:
        json_bodies.decode(b'{"threads": ["a", 5]}', comment_shapes.ThreadList)
    assert refusal.value.field == "threads"


def test_at_most_a_hundred_threads_are_counted() -> None:
    assert len(json_bodies.decode(_threads(100), comment_shapes.ThreadList).threads) == 100
    with pytest.raises(errors.BadInput, match="threads"):
        json_bodies.decode(_threads(101), comment_shapes.ThreadList)


def _threads(count: int) -> bytes:
    return json.dumps({"threads": ["t"] * count}).encode()


@given(st.binary(max_size=200))
def test_any_bytes_are_at_worst_refused(data: bytes) -> None:
    with contextlib.suppress(errors.BadInput):
        json_bodies.decode(data, comment_shapes.NewComment)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from([*GOOD, "x"]), JSON))
def test_any_json_is_at_worst_refused(value: dict[str, object]) -> None:
    try:
        json_bodies.decode(json.dumps(value).encode(), comment_shapes.NewComment)
    except errors.BadInput as refusal:
        assert refusal.field in {*GOOD, "x"}  # noqa: PT017 - a few values are accepted


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
    ],
)
def test_plain_json_is_accepted(content_type: str) -> None:
    _require_json({"Content-Type": content_type})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": ""},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x+json"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/json;text/plain"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "application/json; charset=utf-8; charset=utf-8"},
        {"Content-Type": "application/json; q=1"},
        {"Content-Type": "application/json,text/plain"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {"Content-Type": "application/json", "Content-Encoding": "br"},
    ],
)
def test_anything_but_plain_json_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(problems.UnsupportedMedia):
        _require_json(headers)


def _require_json(headers: dict[str, str]) -> None:
    with flask.Flask("test").test_request_context("/", method="POST", headers=headers):
        json_bodies.require_json(flask.request)
