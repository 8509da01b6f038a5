"""The options of a website that its readers notice (pure).

Owns their values, defaults and limits. The page of comments tells the widget all of them
(`response_shapes.PageOptions`). `votes`, `website` and `guests` also apply to calls of the API:
`cast_vote` and `admission` refuse what an option turns off.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

from comments import errors
from comments.domain.languages import catalogue
from comments.domain.text import web_origins

DefaultOrder = Literal["thread", "recent", "best", "oldest", "newest"]
Theme = Literal["auto", "light", "dark"]
ORDERS: tuple[str, ...] = get_args(DefaultOrder)
THEMES: tuple[str, ...] = get_args(Theme)
# Seconds. With a shorter pause, readers would send more requests than the answers are worth; with a
# longer one, a new comment comes too late to be called live.
SHORTEST_LIVE, LONGEST_LIVE = 10, 3600
MOST_IMAGES = 20  # origins; every page of comments contains all of them


class SiteOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The options of a website. Stored as JSON: renaming one is a migration.

    `votes`: readers may vote. `website`: authors may give their website. `guests`: people may post
    without an account. `order`: the order of a page whose request names none. `images`: exact https
    origins from which images are shown inline. `live`: seconds between two checks for new comments,
    0 for none. `language`: the language of the texts around the comments, "" for the page's own.
    `moderation`: moderators may moderate in the thread.
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


NAMES = SiteOptions.__struct_fields__


def changed(old: SiteOptions, given: Mapping[str, Any]) -> SiteOptions:
    """Replace some options.

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
    """Return the languages that a website may choose; "" stands for the page's own."""
    return "", *catalogue.languages()


def _image_origins(given: tuple[str, ...]) -> tuple[str, ...]:
    if len(given) > MOST_IMAGES:
        raise errors.BadInput("images", "too-many-items", limit=MOST_IMAGES)
    found = dict.fromkeys(web_origins.check(each, "images") for each in given)
    for origin in found:
        # Browsers block images over plain HTTP on a page with HTTPS, or warn about them.
        if not origin.startswith("https://"):
            raise errors.BadInput("images", "not-https", value=origin)
    return tuple(found)
