"""Read Flatthread's own exports (`exporting`), in the format `flatthread`.

`export_reader` reads the lines of a file and checks that it is complete; `kept_fields` checks the
values in threads and comments; `site_restore` applies a file's settings, counters and audit log.
`formats.flatthread` takes from an uploaded file only the data that an owner may import.

Every file may be damaged, or may have been written by strangers. Every text is therefore rendered
or sanitized again, and every value is checked against the limits for values that owners enter. A
file decides who wrote, voted and moderated only if an operator imports it as trusted.
"""
