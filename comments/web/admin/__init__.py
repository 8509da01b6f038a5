"""The admin console: signing in, and a site's pages for its owners and moderators.

`signed_in` knows who is there and guards every page; `site_visit` is the first call of every page
of a site; `pages` has a module for each page.
"""
