"""The options of a website that its readers notice (pure).

This module owns the values, defaults and limits of these options. The comments page passes all of
them except `claims` to the widget (`page_members.PageOptions`). `votes`, `website` and `guests`
also apply to API calls: `cast_vote` and `admission` refuse requests for features that are turned
off.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

from comments import errors
from comments.domain.languages import catalogue
from comments.domain.text.addresses import web_origins

DefaultOrder = Literal["thread", "recent", "best", "oldest", "newest"]
Theme = Literal["auto", "light", "dark"]
ORDERS: tuple[str, ...] = get_args(DefaultOrder)
THEMES: tuple[str, ...] = get_args(Theme)
# In seconds. A shorter pause would cause many requests for little benefit; with a longer pause, the
# comments would no longer be live.
SHORTEST_LIVE, LONGEST_LIVE = 10, 3600
MOST_IMAGES = 20  # Maximum number of origins; every comments page contains all of them.


class SiteOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The options of a website.

    The options are stored as JSON, so renaming one requires a migration.

    - `votes`: whether readers can vote.
    - `website`: whether authors can enter their website.
    - `guests`: whether people can post without an account.
    - `order`: the order of the comments if the request does not specify one.
    - `images`: the exact https origins from which images are shown inline.
    - `live`: the number of seconds between two checks for new comments; 0 disables the checks.
    - `language`: the language of the interface; "" uses the page's language.
    - `moderation`: whether moderators can moderate within the thread.
    - `forms`: whether people can post without JavaScript, with the form under `/embed`.
    - `inbox`: whether the service keeps a list of unread replies for each author.
    - `claims`: whether readers who prove a mail address own the comments imported under it.
    """

    votes: bool = True
    website: bool = True
    guests: bool = True
    order: DefaultOrder = "thread"
    images: tuple[str, ...] = ()
    live: int = 60
    theme: Theme = "auto"
    language: str = ""
    moderation: bool = True
    forms: bool = False
    inbox: bool = False
    claims: bool = True


NAMES = SiteOptions.__struct_fields__


def change(old: SiteOptions, given: Mapping[str, Any]) -> SiteOptions:
    """Return the options with some values replaced.

    Raises:
        errors.BadInput: a value is not allowed; the error names the option.
    """
    wanted = dict(given)
    for name, allowed in (("order", ORDERS), ("theme", THEMES), ("language", languages())):
        if name in given and given[name] not in allowed:
            shown = ", ".join(filter(None, allowed))
            raise errors.BadInput(name, "unknown-value", allowed=shown)
    live = given.get("live", 0)
    if live and not SHORTEST_LIVE <= live <= LONGEST_LIVE:
        raise errors.BadInput("live", "zero-or-range", minimum=SHORTEST_LIVE, maximum=LONGEST_LIVE)
    if "images" in given:
        wanted["images"] = _image_origins(given["images"])
    return msgspec.structs.replace(old, **wanted)


def languages() -> tuple[str, ...]:
    """Return the languages that a website may choose; "" means the language of the page."""
    return "", *catalogue.languages()


def _image_origins(given: tuple[str, ...]) -> tuple[str, ...]:
    if len(given) > MOST_IMAGES:
        raise errors.BadInput("images", "too-many-items", limit=MOST_IMAGES)
    origins = dict.fromkeys(web_origins.check(origin, "images") for origin in given)
    for origin in origins:
        # Browsers block or warn about images over plain HTTP on an HTTPS page.
        if not origin.startswith("https://"):
            raise errors.BadInput("images", "not-https", value=origin)
    return tuple(origins)
