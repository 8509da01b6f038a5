"""Export a whole website to a file: in our own format, or as WXR for other systems.

`site_contents` reads a site as a sequence of lines, all as of one moment; `export_lines` defines
the lines. `site_export` lets `json_lines_export` or `wxr_export` write them to a file, which
`export_file` opens. `export_folder` keeps the latest files in a folder.

Invariants:

1. An export contains no secrets: no keys, no hashes of passwords or networks, no tokens. It
   contains mail addresses and networks only if the operator asks for them.
2. An export is one moment of the site. A file with its final name is complete.
3. Two exports of an unchanged site differ only in the time in their headers.
"""
