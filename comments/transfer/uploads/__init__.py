"""Import files that owners upload in the admin console.

`upload_store` stores the uploaded file and its progress, `upload_steps` checks and imports it, and
`upload_worker` runs these steps in a thread of a serving process.

Nothing is imported before an owner has seen the report about the file and confirmed it. Any process
with a worker continues an upload. The file is encrypted in the store, and is deleted when its
import ends, when it is discarded, or after `upload_store.KEPT`. A process copies it to a
`working_folder` and removes the copy; other processes remove the copies of killed ones.
"""
