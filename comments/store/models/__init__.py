"""Define the stored kinds, their keys, and the conversion of stored rows to records.

This package owns property names, key formats and the choice of indexed properties. Each group of
kinds has its own module; `conversion` turns rows into records. Property names, key names and the
meaning of stored text must never change; golden tests check this. Only properties that a query
filters or orders by are indexed, because each indexed property costs an index row.

    Site      key: site id
    Thread    key: "{site}/{thread id}", or "{site}#{sha-256, hex}" for ids above 500 bytes
    BucketDirectory, Bucket, Ranking
              keys: "current", attempt and number, and attempt, below the thread's key
    FollowerList
              key: the name of the set
    FollowerMark, FollowerSegment
              keys below the set's key: generation and id; generation, attempt and number.
              A generation has ten digits, so key names sort by generation
    Subscriber, Subscription
              keys: digest of an address; kind and digest of the subject, below the subscriber's key
    Follow    key: the thread's key name, below "{author's id}/{site id}" of the kind Follower
    RateBucket
              key: purpose and slot
    Counter   key: "thread/{thread's key name}#{shard}", or "site/{site id}#0"
    Standing  key: "{site id}/{author's id}"
    Category  key: "{site id}/{category}"; a "/" in a category is U+001F here and in the next two
    Day       key: "{site id}/{category, or empty}/{date}"
    Month     key: "{site id}/{month}/{group of pages}"
    Appearance
              key: "{site id}/{category, or empty}/{date, or empty}/{author's id}"
    DeclaredCount
              key: "{site id}/{generation}/{category, day, thread, author's id}"; see
              domain/counters/declared_counters.py
    Event     key: "{comment id}.{revision}"
    Message   key: "{event id}/{channel}/{recipient}"
    Usage     key: "{site id, or *}/{date}"
    Vote, VoterNetwork
              keys below the comment's key: the voter's id; a keyed hash of the network
    VotesDue  key: comment id
    SiteSetup key: site id
    SiteAlias key: another id of a site
    ThreadAlias
              key: another id of a thread, in the form of a Thread's key
    SiteHooks key: site id
    Account   key: 128 random bits, base32, lower case
    Identity  key: "{provider}:{subject}", see accounts/identities.py
    Session   key: digest of its token, below the account's key
    Passkey   key: digest of the credential's id, below the account's key
    SecurityLog
              key: account id
    Ticket    key: digest of its token
    SiteKeys  key: site id
    Providers key: "service", the only key
    MailServer
              key: "service", the only key
    AuditEntry
              key: 128 random bits, base32, made once for each decision
    ErasureDue
              key: comment id
    Rulebook  key: site id
    AuthorLink
              key: "{site id}/{author's id}" of a claim; "{site id}/{author's id}/{author's id}",
              with the ids in order, of a moderator's link
    Report    key: comment id
    Advice    key: comment id
    Job       key: the task and its site; for an import also the import's id
    MovePart  key: "{site id}/{id of the move}/{number}"
    ImportBatch
              key: "{site id}/{import id}/{number}.{comment id}"
    ImportPart
              key: "{site id}/{upload id}/{number}"
    Participation
              key: the author's id, below the thread's key
    Comment   key: 128 bits, base32, lower case; never an automatic id, because a
              retry after a lost response would then store a second comment
"""
