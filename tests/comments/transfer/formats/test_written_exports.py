"""Any threads that are written as an export are imported as they were.

Each writer is the opposite of an importer and shares no code with it.
"""

import csv
import dataclasses
import io
import json
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain.crypto import guest_addresses
from comments.domain.records import Status
from comments.transfer.formats import format_registry
from tests.support.importing import reading_order
from tests.support.threads import sample_exports

LEVELS = 3
START = datetime(2020, 2, 28, 23, 50, tzinfo=UTC)
# Mail addresses and websites by name.
PEOPLE = {
    "Ann": ("ann@mail.example", "https://ann.example"),
    "B\u00e9n": ("", "http://ben.example/?a=b"),
    "\u9673": ("chen@mail.example", ""),
}
STATUSES = st.sampled_from([Status.APPROVED, Status.PENDING, Status.SPAM, Status.RETRACTED])
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@dataclasses.dataclass(frozen=True, slots=True)
class Comment:
    """A comment. Ids are numbers from 1, and `parent` is 0 for a root."""

    id: int
    parent: int
    page: str
    created: datetime
    status: Status
    text: str
    name: str
    score: int


@st.composite
def pages(draw: st.DrawFn) -> list[Comment]:
    """Return comments on two pages in any order. Replies are not older than their parents."""
    comments: list[Comment] = []
    created = START
    for number in range(1, draw(st.integers(1, 9)) + 1):
        page = draw(st.sampled_from(["/beans", "/peas"]))
        others = [each.id for each in comments if each.page == page]
        created += timedelta(seconds=draw(st.sampled_from([0, 1, 3600])))
        comments.append(
            Comment(
                id=number,
                parent=draw(st.sampled_from([0, *others])),
                page=page,
                created=created,
                status=draw(STATUSES),
                text=f"{draw(TEXTS)} {number}",  # The same text twice would be a doubled post.
                name=draw(st.sampled_from(sorted(PEOPLE))),
                score=draw(st.integers(-3, 3)),
            )
        )
    return draw(st.permutations(comments))


def commento(comments: list[Comment]) -> str:
    states = {Status.APPROVED: "approved", Status.PENDING: "unapproved", Status.SPAM: "flagged"}
    rows = [
        {
            "commentHex": str(each.id),
            "domain": "garden.example",
            "url": each.page,
            "commenterHex": f"key of {each.name}",
            "markdown": "[deleted]" if each.status is Status.RETRACTED else each.text,
            "parentHex": str(each.parent or "root"),
            "score": each.score,
            "state": states.get(each.status, "approved"),
            "creationDate": each.created.isoformat(),
        }
        for each in comments
    ]
    people = [
        {
            "commenterHex": f"key of {each.name}",
            "name": each.name,
            "email": PEOPLE[each.name][0] or "undefined",
            "link": PEOPLE[each.name][1] or "undefined",
        }
        for each in comments
    ]
    return json.dumps({"version": 1, "comments": rows, "commenters": people}, ensure_ascii=False)


def comentario(comments: list[Comment]) -> str:
    flags = {Status.APPROVED: "isApproved", Status.PENDING: "isPending", Status.SPAM: "isSpam"}
    rows = [
        {
            "id": str(each.id),
            "pageId": f"id of {each.page}",
            "userCreated": f"id of {each.name}",
            "markdown": "" if each.status is Status.RETRACTED else each.text,
            flags.get(each.status, "isDeleted"): True,
            "createdTime": each.created.isoformat(),
        }
        | ({"parentId": str(each.parent)} if each.parent else {})
        | ({"score": each.score} if each.score else {})
        for each in comments
    ]
    threads = [{"id": f"id of {each}", "path": each} for each in ("/beans", "/peas")]
    people = [
        {"id": f"id of {name}", "name": name, "email": email, "websiteUrl": website}
        for name, (email, website) in PEOPLE.items()
    ]
    return json.dumps({"pages": threads, "comments": rows, "commenters": people})


def rows_of(comments: list[Comment]) -> list[dict[str, object]]:
    return [
        {
            "id": each.id,
            "parent": each.parent,
            "page": each.page,
            "author": each.name,
            "email": PEOPLE[each.name][0],
            "website": PEOPLE[each.name][1],
            "time": each.created.isoformat(),
            "text": each.text,
            "status": "deleted" if each.status is Status.RETRACTED else each.status.value,
            "up": max(each.score, 0),
            "down": max(-each.score, 0),
        }
        for each in comments
    ]


def json_lines(comments: list[Comment]) -> str:
    return "\n".join(map(json.dumps, rows_of(comments)))


def table(comments: list[Comment]) -> str:
    file = io.StringIO()
    rows = rows_of(comments)
    writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def artalk(comments: list[Comment]) -> str:
    rows = [
        {
            "id": str(each.id),
            "rid": str(each.parent),
            "page_key": f"https://garden.example{each.page}/",
            "content": each.text,
            "created_at": each.created.strftime("%Y-%m-%d %H:%M:%S +0000 UTC"),
            "is_pending": str(each.status is Status.PENDING).lower(),
            "nick": each.name,
            "email": PEOPLE[each.name][0],
            "link": PEOPLE[each.name][1],
            "vote_up": str(max(each.score, 0)),
            "vote_down": str(max(-each.score, 0)),
        }
        for each in comments
    ]
    return json.dumps(rows)


def twikoo(comments: list[Comment]) -> str:
    rows = [
        {
            "_id": str(each.id),
            "pid": str(each.parent or ""),
            "rid": "a root",
            "url": each.page,
            "comment": each.text,
            "created": int(each.created.timestamp() * 1000),
            "isSpam": each.status is Status.SPAM,
            "nick": each.name,
            "mail": PEOPLE[each.name][0],
            "link": PEOPLE[each.name][1],
            "like": [f"reader {number}" for number in range(each.score)],
        }
        for each in comments
    ]
    roots = [{key: row[key] for key in row if key != "rid" or row["pid"]} for row in rows]
    return json.dumps(roots, indent=1, ensure_ascii=False)


def rows_of_waline(comments: list[Comment]) -> list[dict[str, object]]:
    states = {Status.APPROVED: "approved", Status.PENDING: "waiting", Status.SPAM: "spam"}
    return [
        {
            "objectId": each.id,
            "url": f"{each.page}/",
            "comment": each.text,
            "insertedAt": each.created.isoformat(),
            "status": states[each.status],
            "nick": each.name,
            "mail": PEOPLE[each.name][0],
            "link": PEOPLE[each.name][1],
            "like": each.score,
        }
        | ({"pid": each.parent, "rid": "a root"} if each.parent else {"pid": None})
        for each in comments
    ]


def valine(comments: list[Comment]) -> str:
    return "\n".join(map(json.dumps, rows_of_waline(comments)))


def waline(comments: list[Comment]) -> str:
    return json.dumps({"type": "waline", "data": {"Comment": rows_of_waline(comments)}})


# The states that an export can have, if not all, and the formats without downvotes.
STATES = {
    "artalk": {Status.APPROVED, Status.PENDING},
    "twikoo": {Status.APPROVED, Status.SPAM},
    "valine": {Status.APPROVED, Status.PENDING, Status.SPAM},
    "waline": {Status.APPROVED, Status.PENDING, Status.SPAM},
}
ONLY_UP = {"twikoo", "valine", "waline"}
# The formats whose texts can become other HTML: those that begin a tag or have several lines.
MIXED = {"artalk", "valine", "waline"}


def fitting(name: str, comments: list[Comment]) -> list[Comment]:
    """Return the comments with states and votes that the format has."""
    states = STATES.get(name, set(Status))
    return [
        dataclasses.replace(
            each,
            status=each.status if each.status in states else Status.APPROVED,
            score=max(each.score, 0) if name in ONLY_UP else each.score,
        )
        for each in comments
    ]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("artalk", artalk),
        ("commento", commento),
        ("comentario", comentario),
        ("generic", json_lines),
        ("generic", table),
        ("twikoo", twikoo),
        ("valine", valine),
        ("waline", waline),
    ],
)
@given(comments=pages())
def test_written_threads_are_read_as_they_were(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    write: Callable[[list[Comment]], str],
    comments: list[Comment],
) -> None:
    path = tmp_path_factory.getbasetemp() / "written"
    comments = fitting(name, comments)
    path.write_bytes(write(comments).encode())
    found = format_registry.get(name)
    with sample_exports.planned_by(found.read, path, levels=LEVELS, unit=found.unit) as plan:
        read = sample_exports.written(plan)
        threads = {each.name.id: [node.id for node in each.nodes] for each in plan.threads}
        ids = {plan.id_of(str(each.id)): str(each.id) for each in comments}
        entries = defaultdict(list)
        for each in comments:
            entry = reading_order.Entry(each.created, str(each.id), str(each.parent))
            entries[f"garden.example{each.page}"].append(entry)
        for page, nodes in threads.items():
            assert nodes == reading_order.in_order(entries[page], LEVELS)
        assert set(threads) == set(entries)
    assert len(read) == len(comments)
    for each in comments:
        stored = read[str(each.id)]
        is_erased = each.status is Status.RETRACTED
        assert (stored.status, stored.created) == (each.status, each.created)
        assert ids.get(stored.reply_to or "", "0") == str(each.parent)
        assert stored.up - stored.down == each.score
        if name not in MIXED or not set("<\n\r") & set(each.text):
            assert stored.body == ("" if is_erased else each.text)
        author = stored.author
        email = guest_addresses.address(author.email, sample_exports.SECRET, now=sample_exports.NOW)
        expected = ("", "", "") if is_erased else (each.name, *PEOPLE[each.name])
        assert (author.name, email, author.website) == expected
