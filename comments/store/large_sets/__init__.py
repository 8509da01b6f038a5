"""Store sets of ids that many processes change at once and that may exceed one entity.

A *set* has a name and any number of *members*, which are ids. Adding or removing a member writes
one *mark*: a small entity in the set's open *generation*. Marks override the *segments*, which are
sorted runs of about 10,000 ids that are written only once. A compaction closes the generation,
merges its marks into new segments, and switches the set's entity to these segments. If the entity
becomes too large to list all segments, it lists segments of lines instead: a list of lists.
docs/ideas/lists.md explains this structure step by step, with an example to run.

    membership      changes and reads sets: `mark`, `mark_within`, `contains`, `page`, `count`
    many_marks      changes several members and sets in one transaction
    set_compaction  moves marks into segments: `compact`, `load`, `erase`; deletes sets: `remove`
    set_search      finds sets by their rows: those that request a compaction, those with a member
    segments        the stored forms and the operations on sorted runs (pure)

A caller only chooses a set's name, which begins with the purpose of the set, such as "thread:" for
the followers of a thread. The functions that change a set return whether a compaction is due. If
so, pass the set's name to `backlog.note_request`. Without that call, the scheduler finds the
request later.

A read shows the set at a single moment. A crash in a compaction leaves only rows that no reader
uses, and the next compaction deletes them.
"""
