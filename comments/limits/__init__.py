"""Limit what readers may do: rates of requests, daily budgets, conditions for posts, Turnstile.

Entry points: `rate_limits`, `budgets` and `usage` (the amounts that a site may use and has used per
day), `post_limits`, `proof_policy` and `turnstile` (the conditions for posts), and
`login_mail_rush`. `site_request` describes the request that is limited.
"""
