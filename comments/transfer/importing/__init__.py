"""Store checked imports, and undo them.

`import_writer` stores the comments that `checking` read from a file. While an import runs,
`running_import` records in the `import_journal` what the import adds. `import_undo` removes what an
import added, and deletes the record when the import can no longer be undone.

Running an interrupted import again continues it, and repeating a finished import adds nothing.
"""
