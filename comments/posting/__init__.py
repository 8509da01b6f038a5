"""What readers do: post, edit, retract, vote, report, preview.

Doors: `new_comment`, `own_comment`, `cast_vote`, `file_report`, `previews`, and
`admission.challenge`. Each door is one function that owns the whole operation: the web decodes,
calls it, and encodes. `new_comment.post` prepares, admits, screens, places and counts, in this
order; what is refused before the comment is placed stores nothing of it.
"""
