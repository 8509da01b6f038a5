"""The admin console: sign-in, accounts, and the pages of a site for its owners and moderators.

`signed_in` finds the session and guards every page. Every page of a site calls `site_visit.enter`
first. `pages` has one module for each page; `labels` has the texts.
"""
