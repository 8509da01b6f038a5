"""People who sign in: accounts, what leads to them, sessions and one-time links.

The only room that writes Account, Identity, Session, Ticket, SiteKeys and Providers:

    Account   name, sign-in name, sealed address, password hash, sealed authenticator secret,
              roles ("{role} {site}"), epoch
    Identity  "{provider}:{subject}" -> account
    Session   below its account: epoch, created, seen
    Ticket    purpose, what it holds, until when, used by which attempt
    SiteKeys  the keys with which a site signs who its readers are
    Providers the OpenID Connect providers that may say who somebody is, and to whom

Invariant: the store holds no password, token or address in clear, only password hashes, keyed
hashes and sealed values.
"""
