"""Carry out readers' actions: post, edit, retract, vote, report and preview.

Entry points: `new_comment`, `own_comment`, `cast_vote`, `file_report`, `previews` and
`admission.challenge`. Each action is one function; `web` decodes the request, calls the function
and encodes its result. `new_comment.post` prepares, admits, screens, places and counts a comment,
in that order.
"""
