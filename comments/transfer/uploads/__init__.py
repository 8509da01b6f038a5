"""Import files that owners upload in the admin console, and copy websites with their comments.

`upload_store` stores the uploaded file and its progress, and `upload_steps` checks and imports it,
in a thread of a serving process. `site_copy` adds a staging copy of a website, whose file is an
export of the original.

Nothing is imported before an owner has seen the report about the file and confirmed it. Any process
with an upload worker can continue an upload. The file is encrypted in the store. The file is
deleted when its import ends, when an owner discards it, or after `upload_store.KEPT`. A process
copies the file to a `working_folder` and removes the copy at the end; if the process is killed,
another process removes the copy.
"""
