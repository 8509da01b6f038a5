"""Find and repair damage in stored data, for example after a restore or a raw change of rows.

`repair` checks a thread's tree, its comments and its pages; `tree_places` computes the places of
the comments. `recount` compares every counter with the rows that it counts. `thread_audit` slowly
checks all threads, one after another, and remembers those with problems.

People can post during these checks, and none of their changes are lost.
"""
