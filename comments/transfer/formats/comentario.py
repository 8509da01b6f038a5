"""Read the JSON export of Comentario 3.

    {"version": 3,
     "pages": [{"id", "domainId", "path", "title", "isReadonly", "createdTime", "countComments",
                "countViews"}],
     "comments": [{"id", "parentId", "pageId", "url", "markdown", "html", "score", "isSticky",
                   "isApproved", "isPending", "isDeleted", "createdTime", "editedTime",
                   "moderatedTime", "deletedTime", "pendingReason", "userCreated", "userEdited",
                   "userModerated", "userDeleted", "authorName", "authorIp", "authorCountry"}],
     "commenters": [{"id", "email", "name", "websiteUrl", "federatedIdP", "hasAvatar",
                     "isModerator", "createdTime"}]}

`url` is the address of the comment, so its part before "#" is the address of the page. The format
omits false flags and zeros. For a missing time, it writes a time in year 1. Earlier versions of
Comentario wrote the format of Commento (`commento`).

The commenters come after the comments, so the file is read twice, once for each list.
"""

from collections.abc import Iterator
from datetime import MINYEAR, datetime
from pathlib import Path

from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.parsing import json_reader, listed_users
from comments.transfer.parsing.record_fields import Fields

SYSTEM = "comentario"

_WHAT = "an export of Comentario"
_COMMENT_FIELDS = (
    frozenset({"id", "parentId", "pageId", "url", "markdown", "html", "score", "direction"})
    | {"isSticky", "isApproved", "isPending", "isDeleted", "isSpam", "userCreated", "authorName"}
    | {"createdTime", "editedTime", "moderatedTime", "deletedTime"}
)
_COMMENT_EXTRAS = {
    "authorIp": "IP addresses of authors",
    "authorCountry": "countries of authors",
    "pendingReason": "reasons for holding comments",
    "userModerated": "names of moderators",
    "userEdited": "names of editors",
    "userDeleted": "names of people who deleted a comment",
}
_PAGE_FIELDS = frozenset(
    ["id", "domainId", "path", "title", "isReadonly", "countComments", "countViews", "createdTime"]
)
_COMMENTER_FIELDS = frozenset(
    {"id", "email", "name", "websiteUrl", "isCommenter", "colourIndex"}
) | {"isModerator", "hasAvatar", "federatedSso"}
_COMMENTER_FLAGS = {
    "isModerator": "roles of moderators",
    "hasAvatar": "pictures of authors",
    "federatedSso": "sign-in methods of authors",
}
_COMMENTER_EXTRAS = {
    "avatarUrl": "pictures of authors",
    "federatedIdP": "sign-in methods of authors",
    "createdTime": "dates when authors signed up",
}


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the pages and comments in an export."""
    users: dict[str, listed_users.ListedUser] = {}
    for fields in _records(path, "commenter"):
        users.setdefault(fields.text("id"), _user(fields))
        yield from listed_users.omissions(fields)
    pages: dict[str, Fields] = {}
    for fields in _records(path, "page"):
        pages.setdefault(fields.text("id"), fields)
        _note_views(fields)
        yield from listed_users.omissions(fields)
    seen: set[str] = set()
    for fields in json_reader.items(path, "comments.item", what=_WHAT):
        if "commentHex" in fields:
            raise fields.bad("the file has the format of Commento; import it as `commento`")
        comment = _comment(fields, users)
        if comment.thread not in seen:
            seen.add(comment.thread)
            yield from _page(fields, pages.get(comment.thread))
        yield from fields.remarks
        yield comment


def _records(path: Path, kind: str) -> Iterator[Fields]:
    return json_reader.items(path, f"{kind}s.item", what=_WHAT, unit=kind, is_required=False)


def _user(fields: Fields) -> listed_users.ListedUser:
    flags = {name: what for name, what in _COMMENTER_FLAGS.items() if fields.is_true(name)}
    fields.leave_out(_COMMENTER_EXTRAS | flags, kept=_COMMENTER_FIELDS)
    return listed_users.ListedUser(
        name=fields.text("name"),
        email=fields.text("email"),
        website=fields.website("websiteUrl"),
        account=fields.text("id"),
        corrections=listed_users.corrections(fields),
    )


def _note_views(page: Fields) -> None:
    views = {"countViews": "numbers of page views"} if page.text("countViews") != "0" else {}
    page.leave_out(views, kept=_PAGE_FIELDS)


def _page(comment: Fields, page: Fields | None) -> Iterator[import_source.SourceThread]:
    """Yield a comment's page, unless the file contains neither the page nor its address."""
    address = comment.text("url").partition("#")[0]
    if page is None and not address:
        return
    path = page.text("path") if page else ""
    yield import_source.SourceThread(
        key=comment.id("pageId"),
        line=comment.number,
        link=address or path,
        id=path,
        title=page.text("title") if page else "",
        closed=page.is_true("isReadonly") if page else False,
    )
    for what in listed_users.corrections(page) if page else ():
        comment.note_correction(what)


def _comment(
    fields: Fields, users: dict[str, listed_users.ListedUser]
) -> import_source.SourceComment:
    body, markup = fields.text("markdown"), import_source.Markup.MARKDOWN
    if not body:
        body, markup = fields.text("html"), import_source.Markup.HTML
    status = _status(fields)
    author = listed_users.ListedUser()
    if status is not Status.RETRACTED:
        author = listed_users.author(fields, _reference(fields, "userCreated"), users)
    up, down = fields.balance("score")
    fields.leave_out(_COMMENT_EXTRAS, kept=_COMMENT_FIELDS)
    return import_source.SourceComment(
        system=SYSTEM,
        id=fields.id("id"),
        line=fields.number,
        thread=fields.id("pageId"),
        parent=_reference(fields, "parentId"),
        status=status,
        created=fields.required_moment("createdTime"),
        name=author.name or fields.text("authorName"),
        email=author.email,
        website=author.website,
        account=author.account,
        body=body,
        markup=markup,
        edited=_time(fields, "editedTime"),
        up=up,
        down=down,
        pinned=fields.is_true("isSticky"),
    )


def _status(fields: Fields) -> Status:
    if fields.is_true("isDeleted"):
        return Status.RETRACTED
    if fields.is_true("isSpam"):
        return Status.SPAM
    if fields.is_true("isPending"):
        return Status.PENDING
    return Status.APPROVED if fields.is_true("isApproved") else Status.REJECTED


def _reference(fields: Fields, name: str) -> str | None:
    """Return the id in a field; None if the id is missing or consists of zeros."""
    text = fields.parent(name)
    return text if text and text.strip("0-") else None


def _time(fields: Fields, name: str) -> datetime | None:
    moment = fields.moment(name)
    return None if moment is None or moment.year == MINYEAR else moment
