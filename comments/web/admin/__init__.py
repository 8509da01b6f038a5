"""The admin console: sign-in, accounts, and the pages where owners and moderators manage a site.

`current_account` finds the session and guards every page. Every page of a site first calls
`site_visit.enter`. `pages` contains one module per page, and `labels` contains the texts.
"""
