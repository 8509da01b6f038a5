"""Read exports of Flatthread itself (`exporters`), for the format `flatthread`.

`export_reader` reads the lines of a file and checks that it is complete; `kept_fields` checks the
values in threads and comments; `site_restore` applies a file's settings, counters and audit log.
`untrusted_items` takes from a file what an owner may import, who uploads it.

Invariants:

1. Every file may be damaged, or written by other people. Every text is rendered or sanitized again,
   and every value is checked against the limits that apply to owners.
2. Only if an operator imports a file, it decides who wrote a comment, who voted and who decided.
"""
