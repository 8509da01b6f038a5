"""Change the settings of a site, and move its threads if their pages get other ids by the change.

    site = page_rules.change("blog", actor, ignore_www=True)

The settings in `thread_ids.RULES` decide which addresses lead to the same page. The threads move
before the settings change: their former ids stay as aliases, so all addresses lead to them at any
time, even if this process dies in between. Then the change can be repeated.
"""

import functools
from datetime import UTC, datetime
from typing import Any

from comments import errors
from comments.domain import records
from comments.domain.ids import thread_ids
from comments.sites import site_settings
from comments.transfer.moves import move_plan, thread_moves


def change(
    site_id: str, actor: records.Actor, *, most: int | None = None, **settings: Any
) -> records.Site:
    """Change the given settings (`site_settings.change`), and return the site.

    Raises:
        errors.NotFound: the site does not exist.
        errors.BadInput: a setting is invalid.
        errors.MoveRefused: two threads would be one page, the site has more than `most` threads, or
            a move of the site is unfinished.
    """
    save = functools.partial(site_settings.change, site_id, **settings)
    after = save(is_trial=True)
    before = site_settings.current(site_id)
    if thread_ids.rules_of(before) == thread_ids.rules_of(after):
        return save()
    plan = move_plan.of_rules(before, after, most=most)
    if plan.collisions:
        old, new, _ = plan.collisions[0]
        raise errors.MoveRefused(
            f"{old} and {new} would be the same page, but both have comments. Merge them first.",
            "ignore_www",
        )
    _move(before, plan, actor)
    changed = save()
    _move(before, move_plan.of_rules(before, changed), actor)  # Threads that are new since then
    return changed


def _move(site: records.Site, plan: move_plan.Plan, actor: records.Actor) -> None:
    if plan.moves:
        begun = thread_moves.begin(
            site, plan, "settings of addresses", actor, now=datetime.now(UTC)
        )
        thread_moves.run_to_end(begun)
