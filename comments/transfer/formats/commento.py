"""Read the JSON export of Commento, which Commento++ and Comentario 2 also write.

    {"version": 1,
     "comments": [{"commentHex", "domain", "url", "commenterHex", "markdown", "html", "parentHex",
                   "score", "state", "creationDate", "direction", "deleted"}],
     "commenters": [{"commenterHex", "email", "name", "link", "photo", "provider", "joinDate",
                     "isModerator"}]}

`url` is the path of the page, or an id that the page chose for itself. Comentario 2 writes `path`,
`host`, `websiteUrl` and `avatarUrl` instead of `url`, `domain`, `link` and `photo`. Comentario 3
has a different format (`comentario`).

The file lists commenters after the comments, one for each comment, so it is read twice. Commento
replaces the text of a deleted comment with "[deleted]". Most versions export only this text but not
the field `deleted`. Commento++ writes "undefined" where a guest has no address, link or photo.
"""

from collections.abc import Iterator
from pathlib import Path

from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.parsing import json_reader, listed_users
from comments.transfer.parsing.record_fields import Fields

SYSTEM = "commento"
DELETED = 'comments without text or with the text "[deleted]", read as deleted'
UNKNOWN_STATE = "comments in an unknown state, read as pending"

_WHAT = "an export of Commento"
_STATES = {"approved": Status.APPROVED, "unapproved": Status.PENDING, "flagged": Status.SPAM}
_DELETED_TEXTS = {"", "[deleted]"}
_NO_VALUE = "undefined"
_GUEST = "anon"  # Guests, with a new commenter for each comment
_COMMENT_FIELDS = frozenset(
    {"commentHex", "domain", "host", "url", "path", "commenterHex", "markdown", "html"}
) | {"parentHex", "score", "state", "creationDate", "direction", "deleted"}
_COMMENTER_FIELDS = frozenset({"commenterHex", "email", "name", "link", "websiteUrl"}) | {
    "isModerator"
}
_COMMENTER_EXTRAS = {
    "photo": "pictures of authors",
    "avatarUrl": "pictures of authors",
    "provider": "sign-in methods of authors",
    "joinDate": "dates when authors signed up",
}


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the pages and comments in an export."""
    users: dict[str, listed_users.ListedUser] = {}
    commenters = json_reader.items(
        path, "commenters.item", what=_WHAT, unit="commenter", is_required=False
    )
    for fields in commenters:
        key = fields.text("commenterHex")
        if key not in users:
            users[key] = _user(key, fields)
            yield from listed_users.omissions(fields)
    pages: set[str] = set()
    for fields in json_reader.items(path, "comments.item", what=_WHAT):
        if "commentHex" not in fields and "pageId" in fields:
            raise fields.bad("the file is an export of Comentario 3; import it as `comentario`")
        page = _page(fields)
        if page.key not in pages:
            pages.add(page.key)
            yield page
        comment = _comment(fields, page, users)
        yield from fields.remarks
        yield comment


def _user(key: str, fields: Fields) -> listed_users.ListedUser:
    fields.leave_out(
        {name: what for name, what in _COMMENTER_EXTRAS.items() if fields.text(name) != _NO_VALUE},
        kept=_COMMENTER_FIELDS | _COMMENTER_EXTRAS.keys(),
    )
    if fields.is_true("isModerator"):
        fields.leave_out({"isModerator": "roles of moderators"})
    website = fields.website("link") or fields.website("websiteUrl")
    email = fields.text("email")
    return listed_users.ListedUser(
        name=fields.text("name"),
        email="" if email == _NO_VALUE else email,
        website="" if website == _NO_VALUE else website,
        account="" if fields.text("provider") == _GUEST else key,
        corrections=listed_users.corrections(fields),
    )


def _page(fields: Fields) -> import_source.SourceThread:
    """Return the page of a comment.

    A page that has neither a path nor an address has only an id.
    """
    host = fields.text("domain") or fields.text("host")
    path = fields.text("url") or fields.text("path") or "/"
    is_path = path.startswith("/")
    return import_source.SourceThread(
        key=f"{host} {path}",
        line=fields.number,
        link=f"https://{host}{path}" if is_path and host else path,
        id=path,
    )


def _comment(
    fields: Fields, page: import_source.SourceThread, users: dict[str, listed_users.ListedUser]
) -> import_source.SourceComment:
    body, markup = fields.text("markdown"), import_source.Markup.MARKDOWN
    if not body:
        body, markup = fields.text("html"), import_source.Markup.HTML
    status = _status(fields, body.strip())
    author = listed_users.ListedUser()
    if status is not Status.RETRACTED:
        author = listed_users.author(fields, _reference(fields, "commenterHex", "anonymous"), users)
    up, down = fields.balance("score")
    fields.leave_out({}, kept=_COMMENT_FIELDS)
    return import_source.SourceComment(
        system=SYSTEM,
        id=fields.id("commentHex"),
        line=fields.number,
        thread=page.key,
        parent=_reference(fields, "parentHex", "root"),
        status=status,
        created=fields.required_moment("creationDate"),
        name=author.name,
        email=author.email,
        website=author.website,
        account=author.account,
        body=body,
        markup=markup,
        up=up,
        down=down,
    )


def _status(fields: Fields, body: str) -> Status:
    if fields.is_true("deleted"):
        return Status.RETRACTED
    if body in _DELETED_TEXTS:
        fields.note_correction(DELETED)
        return Status.RETRACTED
    status = _STATES.get(fields.text("state"))
    if status is None:
        fields.note_correction(UNKNOWN_STATE)
        return Status.PENDING
    return status


def _reference(fields: Fields, name: str, none: str) -> str | None:
    """Return the id in a field. `none` and an id of zeros mean that there is no id."""
    text = fields.parent(name)
    return text if text and text != none and text.strip("0") else None
