"""Limit what readers may do: rates of requests, daily budgets, conditions for posts, Turnstile.

Entry points: `rate_limits`, `budgets` and `usage` (how much a site may use per day, and how much it
has used), `post_limits`, `proof_policy` and `turnstile` (the conditions for posts), and
`login_mail_rush`. `site_request` describes the request to which the limits apply.
"""
