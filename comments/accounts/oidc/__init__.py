"""Sign people in through OpenID Connect providers.

Entry points: `providers` (registration), `login_flow` (from the redirect to the return), `linking`
(owners and moderators), `popup_exchange` (readers, from a pop-up to the page that opened it).
"""
