"""Store prepared posts: admit, screen and place comments in one transaction.

The transaction reads the rows of admission together with the rows of the thread, and writes them
together with the comment. Posts of one process that wait for the same thread are stored together
(`store.batches`). These posts share one look-up and one commit, and each row that several of them
change is written once.

Invariant: Posts that are stored together get the places, numbers, counts and errors that they would
get one after another (test_post_batches.py::test_batches_have_the_effect_of_single_posts).

The order of the checks is: admission, the thread and the answered comment, the site's policy, bans
and rules, the parent's number of children, and the thread's limit. The first failed check decides
the error. If a check after admission fails, the commit contains only the counts of admission. If
the response to a commit is lost, the next run of the transaction finds the comment, or finds that
admission has counted the post. Nothing is therefore counted twice. If a batch fails, each of its
posts is stored alone.
"""

import contextlib
from collections.abc import Sequence

from comments import errors
from comments.events import backlog
from comments.limits import rate_limits
from comments.posting import admission
from comments.posting.admission import PreparedPost
from comments.store import batches, connection, reads, transactions
from comments.store.memory import per_process
from comments.tree import placement, values
from comments.tree.counters import sharding

_Result = values.ChangeResult | errors.FlatthreadError

# The limits of a batch, far below those of a commit (10 MiB), so that a batch never blocks a thread
# for long.
MOST_POSTS = 32
MOST_BYTES = 2_000_000  # Total bytes of the texts.
_MOST_BYTES_OF_A_CHARACTER = 4


_BATCHES = per_process.PerProcess(
    lambda: batches.Batches[PreparedPost, _Result](MOST_POSTS, MOST_BYTES)
)


def store(post: PreparedPost) -> values.ChangeResult:
    """Store a comment, and report the change.

    Raises:
        errors.CodedError: see `PreparedPost.admit`, `screening.of_post` and
            `placement.Placement.place`.
        errors.ThreadMoved: the post belongs to another thread. Nothing was stored or counted.
        errors.Overloaded: the store did not answer in time. The comment may have been stored.
    """
    draft = post.draft
    size = _MOST_BYTES_OF_A_CHARACTER * (len(draft.text.body) + len(draft.text.html))
    with connection.within(admission.PATIENCE if post.line else connection.current().deadline):
        result = _BATCHES.get().run(
            f"{draft.name.site}/{draft.name.id}", post, _store, key=draft.id, size=size
        )
    if isinstance(result, errors.FlatthreadError):
        raise result
    if result.is_new and result.comment.listed:
        backlog.note_changes(draft.name)
    backlog.tell(result.event)
    return result


def _store(posts: Sequence[PreparedPost], has_run: bool) -> Sequence[_Result]:  # noqa: FBT001 - see `batches.Work`
    """Store posts to one thread in one transaction, and return a result for each post."""
    current = connection.current()
    with contextlib.ExitStack() as stack:
        # Posts from one network to several threads conflict on the network's row, so they take
        # turns within the process. The rows are sorted, so that two transactions never wait for
        # each other.
        for line in sorted({post.line for post in posts if post.line}):
            stack.enter_context(current.line(line))
        turn: sharding.TransactionShard = sharding.FIRST
        # All roots conflict on the thread's row, so spreading them over counter shards would not
        # help.
        if all(post.draft.reply_to is not None for post in posts):
            turn = stack.enter_context(sharding.turn(posts[0].draft.name))
        return transactions.transaction(lambda: _store_all(posts, turn), has_run=has_run)


def _store_all(posts: Sequence[PreparedPost], turn: sharding.TransactionShard) -> Sequence[_Result]:
    """Run the transaction's body: read everything in one look-up, decide, write.

    A refusal is returned, not raised, because the other posts and the counts of admission must be
    committed.
    """
    placed = placement.Placement(posts[0].scheme, [post.draft for post in posts], turn)
    counted = rate_limits.SharedBuckets(bucket for post in posts for bucket in post.buckets)
    rows = reads.get_multi([*placed.keys, *counted.keys])
    placed.fill(rows[: len(placed.keys)])
    counted.fill(rows[len(placed.keys) :])
    results = [_place(post, placed, counted) for post in posts]
    transactions.apply(*placed.writes(), counted.writes())
    return results


def _place(
    post: PreparedPost, placed: placement.Placement, counted: rate_limits.SharedBuckets
) -> _Result:
    """Admit, screen and place a post."""
    try:
        # If an earlier run committed but its response was lost, the comment and its counts already
        # exist.
        earlier = placed.earlier(post.draft) if transactions.may_have_run() else None
        if earlier is not None:
            return earlier
        placed.check_thread(post.draft)
        # The comment of a retry nearly always exists, so inserting it would fail.
        earlier = placed.earlier(post.draft) if post.admit(counted) else None
        return earlier or placed.place(post.draft, post.decide)
    except errors.Overloaded:
        raise
    except (errors.CodedError, errors.ThreadMoved) as error:
        return error
