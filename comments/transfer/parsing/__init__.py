"""Read XML, JSON, CSV and SQLite files as streams, in bounded memory, for `formats`.

All readers refuse a damaged file with `errors.BadImport`, which names the file and, if it is known,
the line or record.

`xml_reader` reads XML; `xml_repairs` corrects the text before it is parsed.

Memory does not grow with the size of a file. A file with a DOCTYPE is refused, so no entity is
expanded or fetched. A fault is corrected only if the intended meaning is certain.
"""
