"""Export a whole website to a file: in our own format, or as WXR for other systems.

`site_contents` reads a site as a sequence of lines that show its state at one moment;
`export_lines` defines the lines. `site_export` uses `json_lines_export` or `wxr_export` to write
the lines to a file, which `export_file` opens. `export_folder` keeps the latest files in a folder.

Invariant: An export contains no keys, no tokens, and no hashes of passwords or networks. It
contains mail addresses and networks only if the operator asks for them
(test_site_contents.py::test_an_export_contains_addresses_only_on_request_and_secrets_never).

A file with its final name is complete. Two exports of an unchanged site differ only in the time in
their headers.
"""
