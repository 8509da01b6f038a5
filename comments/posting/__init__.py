"""Carry out what readers do: post, edit, retract, vote, report and preview.

Entry points: `new_comment`, `own_comment`, `cast_vote`, `file_report`, `previews` and
`admission.challenge`. Each operation is one function; `web` decodes the request, calls it and
encodes the result. `new_comment.post` prepares, admits, screens, places and counts a comment, in
this order.

Invariants:

1. A post that is refused before it is placed leaves no part of the comment in the store.
"""
