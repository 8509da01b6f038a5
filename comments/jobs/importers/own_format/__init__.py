"""Read exports of Flatthread itself (`exporters`), for the format `flatthread`.

`export_reader` reads the lines of a file and checks that it is complete; `kept_fields` checks the
values in threads and comments; `site_restore` applies a file's settings, counters and audit log.

Invariants:

1. A file is not trusted: it may be damaged, or written by other people. Every text is rendered or
   sanitized again, and every value is checked against the limits that apply to owners.
"""
