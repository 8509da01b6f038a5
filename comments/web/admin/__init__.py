"""The admin console: sign-in, accounts, and the pages of a site for its owners and moderators.

`signed_in` finds the session and guards every page. Every page of a site first calls
`site_visit.enter`. `pages` contains one module per page, and `labels` contains the texts.
"""
