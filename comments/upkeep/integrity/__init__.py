"""Find and repair damage in stored data, which a restore or a raw change of rows may leave.

`repair` compares a thread's tree, its comments and its pages; `tree_places` computes the places of
the comments. `recount` compares every counter with the rows that it counts. `thread_audit` checks
all threads slowly, one after another, and remembers those with problems.

People can post meanwhile, and none of their changes is lost.
"""
