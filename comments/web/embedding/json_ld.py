"""A page of a thread as JSON-LD: schema.org's DiscussionForumPosting and Comment. Pure.

The data contains only what the page shows. The template writes the data with the filter `tojson`.
This filter escapes `<` as `\u003c`, and also U+2028, so that no text can end the script element.
Commenters can send any address, so comments get an `@id` only if the thread's address is on one of
the site's origins.
"""

import html
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from comments.domain import presentation
from comments.domain.languages import catalogue
from comments.web.rendering import nesting

Json: TypeAlias = dict[str, Any]

# Matches tags in the sanitizer's format: in lower case, with all values in double quotes.
_BLOCK_END = re.compile(r"</(?:p|li|h[3-6]|pre|blockquote|tr|ol|ul|table)>|<(?:br|hr)>")
_TAG = re.compile(r'</?[a-z][a-z0-9]*(?: [a-z-]+="[^"]*")*>')


def posting(
    *,
    title: str,
    address: str,
    total: int,
    items: Sequence[nesting.Item],
    texts: catalogue.Catalogue = catalogue.ENGLISH,
) -> Json:
    """Return the page as one object, with replies nested inside the comments that they answer."""
    document: Json = {
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
        document["headline"] = title
    if address:
        document |= {"@id": address, "url": address, "mainEntityOfPage": address}
    path = [document]
    for item in items:
        made = _comment(item, address, texts)
        del path[item.depth + 1 :]
        path[-1].setdefault("comment", []).append(made)
        path.append(made)
    return document


def _comment(item: nesting.Item, address: str, texts: catalogue.Catalogue) -> Json:
    comment = item.comment
    data: Json = {
        "@type": "Comment",
        "datePublished": nesting.machine_time(comment.created),
    }
    if comment.replies is not msgspec.UNSET:
        data["commentCount"] = comment.replies
    if address:
        data["@id"] = data["url"] = _identity(address, comment.id)
    if address and item.answers:
        data["parentItem"] = {"@type": "Comment", "@id": _identity(address, item.answers)}
    if comment.status is presentation.Shown.REMOVED:
        return data | {"creativeWorkStatus": "Deleted"}
    if comment.edited:
        data["dateModified"] = nesting.machine_time(comment.edited)
    return data | {"text": plain(comment.html), "author": _author(comment, texts)}


def _author(comment: presentation.PublicComment, texts: catalogue.Catalogue) -> Json:
    data: Json = {"@type": "Person", "name": nesting.author_of(comment, texts)}
    website = nesting.website_of(comment)
    return data | {"url": website} if website else data


def _identity(address: str, comment_id: str) -> str:
    return f"{address}#{nesting.anchor(comment_id)}"


def plain(sanitised: str) -> str:
    """Return a comment's HTML as plain text, with one line per block."""
    lined = _TAG.sub("", _BLOCK_END.sub("\n", sanitised))
    # Each line is stripped separately, because a regular expression for spaces around line ends
    # takes quadratic time.
    lines = (line.strip() for line in html.unescape(lined).split("\n"))
    return "\n".join(filter(None, lines))
