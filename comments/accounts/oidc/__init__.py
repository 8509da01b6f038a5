"""Signing in through OpenID Connect providers.

Doors: `providers` (which are known, and to whom), `login_flow` (the way out and back), `linking`
(owners and moderators), `popup_exchange` (readers, from a pop-up to the page that opened it).
"""
