"""Subscriptions: who follows a thread.

Owns the name of a thread's list and what following means: a follower id joins the list or leaves
it, as often as it likes, and once is as good as twice. How such a list is stored is `followers`.

There is no call over HTTP for it: whoever follows has to be a person whose address was confirmed.
Whether site and thread exist, and whether this follower may, is for the caller to say. The id of
who left may stand in a segment until the list is folded next; to erase it now, compact the list.
"""

from comments import followers, models, records, tasks


def follow(thread: records.ThreadName, follower: str) -> None:
    """Let a follower follow a thread, also one who does.

    Raises:
        errors.BadInput: the id cannot be one (`followers.check`).
        errors.Overloaded: the store did not answer in time.
    """
    _mark(thread, follower, follows=True)


def unfollow(thread: records.ThreadName, follower: str) -> None:
    """Let a follower follow a thread no more, also one who does not.

    Raises:
        errors.BadInput, errors.Overloaded: see `follow`.
    """
    _mark(thread, follower, follows=False)


def is_following(thread: records.ThreadName, follower: str) -> bool:
    """Whether a follower follows a thread."""
    return followers.contains(list_of(thread), follower)


def page(thread: records.ThreadName, *, after: str = "", limit: int) -> followers.Page:
    """The next followers of a thread behind a position, for delivery; see `followers.page`."""
    return followers.page(list_of(thread), after=after, limit=limit)


def count(thread: records.ThreadName) -> int:
    """How many follow a thread."""
    return followers.count(list_of(thread))


def list_of(thread: records.ThreadName) -> records.ListName:
    """The name of a thread's list. Stored: changing it loses all followers."""
    return records.ListName(f"thread:{models.thread_key_name(thread)}")


def _mark(thread: records.ThreadName, follower: str, *, follows: bool) -> None:
    name = list_of(thread)
    if followers.mark(name, follower, follows=follows):
        tasks.asked(name)
