"""Move threads to other ids, because their pages have moved.

`thread_moves` begins, finishes and undoes moves; `move_plan` shows in advance what a move would do.
A moved thread keeps its stored id (`threads.thread_aliases`), so a move writes the thread's row and
an alias, and none of its comments. A thread never moves to an id that leads to another thread.

`join_plan` and `thread_joins` merge two threads, or split a discussion off; their undo begins in
`thread_moves` too.
"""
