"""Post sample discussions from nested literals, comment by comment, in the literals' order."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from comments import config
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.moderation import classifier_verdicts
from comments.limits.site_request import SiteRequest
from comments.moderation import review_queue
from comments.posting import admission, new_comment, own_comment
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows
from comments.tree import values
from comments.tree.bulk import bulk_append
from comments.tree.lists import ordered_query

START = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
SETTINGS = config.Settings(secret="a secret of the tests")
ADA = records.Actor("cli", "Ada")
Nested = Mapping[str, Any]
TREE: Nested = {
    "1": {"1.1": {"1.1.1": {}, "1.1.2": {}}, "1.2": {}},
    "2": {"2.1": {}},
    "3": {},
}
# The texts in TREE in reading order.
ORDER = ["1", "1.1", "1.1.1", "1.1.2", "1.2", "2", "2.1", "3"]


def filing(site: records.Site, *categories: str) -> records.Site:
    """Return the site with the given categories, which its pages may name."""
    return msgspec.structs.replace(site, categories=categories)


def shaped(site: records.Site, scheme: sorthash.Scheme) -> records.Site:
    """Return the site with another scheme, which its next threads get. Change its row, too."""
    row = reads.get(comment_rows.site_key(site.id))
    if row is not None:
        row.digits, row.width, row.levels = scheme.digits, scheme.width, scheme.levels
        transactions.transaction(
            lambda: transactions.apply(ownership.Writes("site_settings", put=(row,)))
        )
        site_settings.COPIES.get().drop(site.id)
    return msgspec.structs.replace(
        site, digits=scheme.digits, width=scheme.width, levels=scheme.levels
    )


def name_of(site: records.Site, thread: str = "page") -> records.ThreadName:
    return records.ThreadName(site.id, thread)


def queue(
    status: records.Status = records.Status.PENDING, site: str = "demo"
) -> tuple[records.Case, ...]:
    """Return a site's newest comments with a status."""
    wanted = review_queue.QueueFilter(site, (status,))
    return review_queue.page(wanted, secret=SETTINGS.secret).cases


def request(
    site: records.Site | str = "demo",
    *,
    settings: config.Settings = SETTINGS,
    now: datetime = START,
    network: str = "",
) -> SiteRequest:
    """Return a request to a site from a network. Pass a site id if only the id matters."""
    found = records.Site(site, (), "", 2) if isinstance(site, str) else site
    return SiteRequest(found, settings, now, classifier_verdicts.Sender(network))


def post(
    site: records.Site,
    body: str,
    parent: str | None = None,
    *,
    settings: config.Settings = SETTINGS,
    now: datetime = START,
    thread: str = "page",
    **more: Any,
) -> records.Comment:
    """Post a comment with the text `body`, by an author who is named after the text."""
    author = more.pop("author", records.Author(name=f"author of {body}", id=f"g:{body}"))
    sender = more.pop("sender", classifier_verdicts.Sender())
    sent = admission.Submission(thread, parent, author, body, **more)
    return new_comment.post(sent, SiteRequest(site, settings, now, sender)).comment


def author(name: str) -> records.Author:
    """Return an author with an id made from the name."""
    return records.Author(name, id=f"g:{name}")


def retract(comment: records.Comment) -> None:
    """Retract a comment as its author."""
    own_comment.retract(comment.id, author_id=comment.author.id, revision=None, now=START)


def node(
    text: str,
    above: str | None = None,
    status: records.Status = records.Status.APPROVED,
    *,
    author: str = "",
    **more: Any,
) -> records.ImportedComment:
    """Return a comment to import, with an id made from its text. `above` is the parent's text."""

    def id_of(each: str) -> str:
        return comment_rows.comment_id(each.encode().ljust(16, b"."))

    given: dict[str, Any] = {"created": START, "renderer": "", "source": text, "html": text} | more
    return records.ImportedComment(
        id=id_of(text),
        reply_to=None if above is None else id_of(above),
        author=records.Author(text, id=author),
        body=text,
        status=status,
        **given,
    )


def grow(
    site: records.Site,
    nested: Nested,
    *,
    settings: config.Settings = SETTINGS,
    thread: str = "page",
    **more: Any,
) -> dict[str, records.Comment]:
    """Post a whole tree, one comment per minute; return the comments by text."""
    grown: dict[str, records.Comment] = {}

    def below(children: Nested, parent: str | None) -> None:
        for body, replies in children.items():
            now = START + timedelta(minutes=len(grown))
            grown[body] = post(
                site, body, parent, settings=settings, now=now, thread=thread, **more
            )
            below(replies, grown[body].id)

    below(nested, None)
    return grown


def texts(rows: Any) -> list[str]:
    """Return the comments' texts, with "-" for a tombstone."""
    return ["-" if row.is_tombstone else row.body for row in rows]


def listed(site: records.Site, thread: str = "page") -> list[str]:
    """Return the whole thread as a reader sees it."""
    return texts(ordered_query.thread(name_of(site, thread)))


def walk(rows: Any) -> list[str]:
    """Return a thread's ids by parent links and numbers: the oracle for the reading order."""
    children: dict[str | None, list[records.Comment]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    order: list[str] = []
    waiting = sorted(children.get(None, []), key=lambda row: -row.number)
    while waiting:
        row = waiting.pop()
        order.append(row.id)
        waiting += sorted(children.get(row.id, []), key=lambda row: -row.number)
    return order


def store_imported(name: records.ThreadName, *nodes: records.ImportedComment) -> int:
    """Import comments in one transaction; return the number of new comments."""

    def body() -> int:
        imported = bulk_append.append_imported(
            SETTINGS.scheme, [values.ImportedThread(name, nodes)], now=START
        )
        transactions.apply(*imported.writes)
        return imported.added_count

    return transactions.transaction(body)
