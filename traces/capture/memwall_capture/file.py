"""Writes the records of a capture as FORMAT.md describes: one JSON object per line, the same bytes every time."""

import contextlib
import gzip
import io
import json
import os


def write(path, header, records):
    """Writes beside and renames. Compressed where the name ends with .gz; without a time inside."""
    path = os.fspath(path)
    partial = path + ".tmp"
    try:
        with contextlib.ExitStack() as stack:
            raw = stack.enter_context(open(partial, "wb"))
            if path.endswith(".gz"):
                raw = stack.enter_context(gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=9, mtime=0))
            text = stack.enter_context(io.TextIOWrapper(raw, encoding="utf-8", newline="\n"))
            # The last line counts the others: a file that was cut off is told from a whole one.
            for record in ({**header, "end": True}, *records, {"end": len(records)}):
                text.write(json.dumps(record, separators=(",", ":"), ensure_ascii=False))
                text.write("\n")
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
