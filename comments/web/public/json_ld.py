"""A page of a thread for machines: schema.org's DiscussionForumPosting and Comment, as JSON-LD.

Pure. Says only what the page shows. Values are plain: the template's `tojson` makes them a data
block in which no text can end the element (`<` is `\u003c`, U+2028 is escaped). Without an address
on the site's own origins nothing has an identity, because any other would be a stranger's word.
"""

import html
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from comments.domain import presentation
from comments.web.public import nesting

Json: TypeAlias = dict[str, Any]

# Tags as our sanitiser writes them: lower case, every value in double quotes.
_BLOCK_END = re.compile(r"</(?:p|li|h[3-6]|pre|blockquote|tr|ol|ul|table)>|<(?:br|hr)>")
_TAG = re.compile(r'</?[a-z][a-z0-9]*(?: [a-z-]+="[^"]*")*>')


def posting(*, title: str, address: str, total: int, items: Sequence[nesting.Item]) -> Json:
    """The page as one object, comments within comments."""
    found: Json = {
        "@context": "https://schema.org",
        "@type": "DiscussionForumPosting",
        "commentCount": total,
        "interactionStatistic": {
            "@type": "InteractionCounter",
            "interactionType": "https://schema.org/CommentAction",
            "userInteractionCount": total,
        },
        "comment": [],
    }
    if title:
        found["headline"] = title
    if address:
        found |= {"@id": address, "url": address, "mainEntityOfPage": address}
    path = [found]
    for item in items:
        made = _comment(item, address)
        del path[item.depth + 1 :]
        path[-1].setdefault("comment", []).append(made)
        path.append(made)
    return found


def _comment(item: nesting.Item, address: str) -> Json:
    comment = item.comment
    found: Json = {
        "@type": "Comment",
        "datePublished": nesting.machine_time(comment.created),
    }
    if comment.replies is not msgspec.UNSET:
        found["commentCount"] = comment.replies
    if address:
        found["@id"] = found["url"] = _identity(address, comment.id)
    if address and item.answers:
        found["parentItem"] = {"@type": "Comment", "@id": _identity(address, item.answers)}
    if comment.status is presentation.Shown.REMOVED:
        return found | {"creativeWorkStatus": "Deleted"}
    if comment.edited:
        found["dateModified"] = nesting.machine_time(comment.edited)
    return found | {"text": plain(comment.html), "author": _author(comment)}


def _author(comment: presentation.Comment) -> Json:
    found: Json = {"@type": "Person", "name": nesting.author_of(comment)}
    website = nesting.website_of(comment)
    return found | {"url": website} if website else found


def _identity(address: str, comment_id: str) -> str:
    return f"{address}#{nesting.anchor(comment_id)}"


def plain(sanitised: str) -> str:
    """The text of a body's HTML, a line for each block."""
    lined = _TAG.sub("", _BLOCK_END.sub("\n", sanitised))
    # Line by line: one expression for blanks around a line's end takes the square of their number.
    lines = (line.strip() for line in html.unescape(lined).split("\n"))
    return "\n".join(filter(None, lines))
