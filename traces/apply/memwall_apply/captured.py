"""A captured step (.mwc, traces/capture/FORMAT.md) as `verify` needs it: kernels, copies and memory in host order."""

import gzip
import json
import os
import zlib

from .errors import ApplyError

DEVICE = "hbm"
PLACES = (DEVICE, "host", "host_pinned")
LARGEST = 1 << 50  # bytes, and any other number, as `memwall import` has it

# What a member that is read here may be: a tuple of words, or one of the kinds of _is().
MEMBERS = {
    "bytes": "number", "kind": "word", "place": PLACES, "label": "word", "preexisting": "flag", "stream": "number",
    "module": "word", "phase": "word", "reads": "numbers", "writes": "numbers", "kernels": "number", "name": "word",
    "from": PLACES, "to": PLACES, "blocking": "flag", "number": "number",
}
# Of each type of record: what its own value may be, and which other members it must have.
TYPES = {
    "storage": ("number", ("bytes", "kind", "place")), "alloc": ("number", ()), "free": ("number", ()), "op": ("name", ()),
    "copy": ("number", ("from", "to")), "collective": ("name", ()),
    "event": (("record", "wait"), ("number",)), "synchronize": (("stream", "event", "device", "own_op"), ()),
    "step": ("word", ()), "loss": ("flag", ()), "end": ("number", ()),
}
EXPECTED = {"number": f"a whole number from 0 to {LARGEST}", "word": "a word", "name": "a name", "flag": "true or false",
            "numbers": "a list of whole numbers"}


class Captured:
    """`records`: (type, record), in host order. `storages`: number to its record. What is read of a record later is of the
    type that MEMBERS says: everything is checked here."""

    def __init__(self, path):
        self.path = os.fspath(path)
        lines = self._lines()
        self.header = self._object(1, lines[0]) if lines else {}
        if self.header.get("format") != "memwall-capture":
            raise ApplyError(f"{self.path}: found no captured step; expected what memwall_capture writes (.mwc or .mwc.gz).")
        if self.header.get("version", 1) != 1:
            self._fail(1, f"version {json.dumps(self.header['version'])[:40]}", "version 1")
        self.storages, self.records = {}, []
        for i, line in enumerate(lines[1:], 2):
            self._read(i, self._object(i, line))
        last = self.records[-1][0] if self.records else None
        if self.header.get("end") and last != "end":
            self._fail(len(lines), f"{last or 'nothing'} as the last record", "an end record: the file was cut off")

    def _read(self, number, record):
        kind = self._type(number, record)
        if self.records and self.records[-1][0] == "end":
            self._fail(number, f"a record of type {kind} behind the end", "nothing")
        if kind == "storage":
            if record["storage"] in self.storages:
                self._fail(number, f"storage {record['storage']} a second time", "each to be described once")
            self.storages[record["storage"]] = record
            return
        self._require_storages(number, kind, record)
        if kind == "end" and record["end"] != len(self.records) + len(self.storages):
            self._fail(number, f"the end of {record['end']} records behind {len(self.records) + len(self.storages)}",
                       "none to be missing and none twice")
        self.records.append((kind, record))

    def _type(self, number, record):
        """Of a record whose members are what they may be."""
        kinds = [key for key in TYPES if key in record]
        if len(kinds) != 1:
            self._fail(number, "a record of " + (f"types {' and '.join(kinds)}" if kinds else "unknown type"),
                       f"one of {', '.join(TYPES)}")
        kind, = kinds
        own, required = TYPES[kind]
        for key in required:
            if key not in record:
                self._fail(number, f"a record of type {kind} without {key}", _text(MEMBERS[key]))
        for key, value in record.items():
            what = own if key == kind else MEMBERS.get(key)
            if what is not None and not _is(value, what):
                self._fail(number, f"{key} {json.dumps(value)[:60]}", _text(what))
        return kind

    def _fail(self, number, found, expected):
        raise ApplyError(f"{self.path}, line {number}: found {found}; expected {expected}.")

    def _lines(self):
        try:
            with open(self.path, "rb") as file:
                data = file.read()
            if data[:2] == b"\x1f\x8b":
                data = gzip.decompress(data)
            return data.decode("utf-8").removesuffix("\n").split("\n")
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as e:
            raise ApplyError(f"{self.path}: cannot be read: {e}.") from e

    def _object(self, number, line):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as e:
            raise ApplyError(f"{self.path}, line {number}: found what is no JSON ({e}); expected a record of a captured step.") from e
        if not isinstance(found, dict):
            self._fail(number, line[:40], "an object")
        return {key: value for key, value in found.items() if value is not None}  # null is the same as nothing

    def _require_storages(self, number, kind, record):
        used = [record[kind]] if kind in ("alloc", "free") else [*record.get("reads", ()), *record.get("writes", ())]
        for storage in used:
            if storage not in self.storages:
                self._fail(number, f"storage {storage}, which no line before describes", "a storage's record before its first use")

    def on_device(self, storage):
        return self.storages[storage]["place"] == DEVICE

    def label(self, storage):
        one = self.storages[storage]
        return f"{one.get('label', 'storage')} ({one['bytes']} bytes)"

    def launched(self):
        """Ops and collectives with work for the device."""
        for kind, record in self.records:
            if kind == "collective" or (kind == "op" and record.get("kernels", 1) > 0):
                yield record

    def peak(self):
        """The most bytes that live on the device at once."""
        live = sum(s["bytes"] for s in self.storages.values() if s.get("preexisting") and s["place"] == DEVICE)
        most = live
        for kind, record in self.records:
            if kind in ("alloc", "free") and self.on_device(record[kind]):
                size = self.storages[record[kind]]["bytes"]
                live += size if kind == "alloc" else -size
                most = max(most, live)
        return most

    def makers(self):
        """Storage to the op that wrote it first."""
        found = {}
        for kind, record in self.records:
            if kind in ("op", "copy", "collective"):
                for storage in record.get("writes", ()):
                    found.setdefault(storage, record)
        return found


def is_copy(kind, record, source, phases):
    """From the device (`source` true) or to it."""
    return kind == "copy" and (record["from"] == DEVICE) == source and record.get("phase") in phases


def name_of(record):
    return record.get("name") or record.get("op") or record.get("collective")


def _text(what):
    return f"one of {', '.join(what)}" if isinstance(what, tuple) else EXPECTED[what]


def _is(value, what):
    if isinstance(what, tuple):
        return isinstance(value, str) and value in what
    if what == "numbers":
        return isinstance(value, list) and all(_is(one, "number") for one in value)
    if what == "number":
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
    return isinstance(value, bool) if what == "flag" else isinstance(value, str) and (what == "word" or value != "")
