"""Decide whether a thread accepts comments, both for posts and for the pages that show it."""

import enum
from datetime import datetime, timedelta

from comments.domain import records
from comments.domain.records import Policy
from comments.limits import budgets
from comments.moderation.policy import rulebook


class ThreadAccess(enum.StrEnum):
    """Whether a thread accepts comments. `READ_ONLY` accepts neither comments nor edits."""

    OPEN = "open"
    CLOSED = "closed"
    READ_ONLY = "read-only"


def of(
    thread: records.Thread | records.ThreadTerms, book: rulebook.Rulebook, now: datetime
) -> ThreadAccess:
    """Return whether a thread accepts comments under its own terms and its site's policy."""
    policy = thread.policy or book.policy
    if thread.state is not records.ThreadState.OPEN:
        return ThreadAccess.CLOSED
    if policy is Policy.READ_ONLY:
        return ThreadAccess.READ_ONLY
    age = timedelta(0) if thread.created is None else now - thread.created
    is_old = bool(book.close_after) and age > timedelta(days=book.close_after)
    return ThreadAccess.CLOSED if policy is Policy.CLOSED or is_old else ThreadAccess.OPEN


def for_pages(site: records.Site, thread: records.ThreadTerms, now: datetime) -> ThreadAccess:
    """Return the state for pages: read-only if the site's budget is spent, else the result of `of`.

    The result depends on the process's copies of the rules and the usage, each at most a minute
    old.
    """
    access = of(thread, rulebook.for_pages(site.id), now)
    is_strict = site.budget.then == "read-only" and access is ThreadAccess.OPEN
    if is_strict and budgets.of(site, now=now) is budgets.BudgetLevel.SPENT:
        return ThreadAccess.READ_ONLY
    return access
