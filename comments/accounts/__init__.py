"""Manage the accounts, identities, sessions and one-time links of people who sign in.

Entry points: `accounts`, `security_log`, `invitations`, `sessions`, `moderation_sessions`,
`email_login`, `reader_accounts`, `passwords.password_login` and, for providers, `oidc.login_flow`.
Only this package writes Account, Identity, Session, ModerationSession, Passkey, SecurityLog,
Ticket, SiteKeys and Providers:

    Account   name, sign-in name, encrypted address, password hash, encrypted authenticator secret,
              hashes of recovery codes, roles ("{role} {site}"), epoch
    Identity  "{provider}:{subject}" -> account
    Session   a child of its account: epoch, created, seen
    ModerationSession  a child of its account: site, origin, epoch, created, seen
    Passkey   a child of its account: name, credential, public key, number of signatures
    SecurityLog  sign-ins and changes of an account, and who made them
    Ticket    a one-time token: purpose, content, expiry, the attempt that used it
    SiteKeys  the keys with which a site signs tokens for its readers
    Providers the OpenID Connect providers, and the people who can sign in through each

Invariant: The store contains no password, token or address in plain text, only password hashes,
keyed hashes and encrypted values
(test_accounts.py::test_the_store_contains_no_password_token_or_address).
"""
