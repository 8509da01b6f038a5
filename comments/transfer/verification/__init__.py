"""Compare the comments of an export with the comments in the store.

`import_verification` goes through a checked file (`checked_import`) and the store side by side;
`stored_comments` reads the store, and `import_history` reads the journals of imports.
`thread_comparison` verifies one thread, with `comment_comparison` (pure). `verification_report`
groups the differences and reports them.

A verification writes nothing. At any time, only one batch of texts is in memory. Each batch of
comments is read as of one moment, so people may post, edit, vote and moderate during a
verification.

The expected values come from the plan of the import (`import_plan`). A verification therefore
cannot find faults in the reader of a format or in the plan. Instead, the tests of the formats
compare both with independent readers.
"""
