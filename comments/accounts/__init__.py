"""People who sign in: accounts, what leads to them, sessions and one-time tickets.

The only module that writes Account, Identity, Session, Ticket, SiteKeys and Providers:

    Account   name, sign-in name, sealed address, hash of a password, sealed authenticator's secret,
              roles ("{role} {site}"), epoch
    Identity  "{provider}:{subject}" -> account
    Session   below its account: epoch, created, seen
    Ticket    purpose, what it holds, until when, used by which attempt
    SiteKeys  the keys with which a site signs who its readers are
    Providers who may say that somebody is somebody, and to whom

The store holds no password, no token and no address as it is: hashes (`passwords`), keyed digests
(`sessions`, `tickets`, `identities`) and seals. Callers name the module of the noun they mean.
"""
