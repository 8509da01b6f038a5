"""What readers do: post, edit, retract, vote, report, preview.

Doors: `submission`, `cast_vote`, `file_report`, `previews`. `admission` decides who may post now.
"""
