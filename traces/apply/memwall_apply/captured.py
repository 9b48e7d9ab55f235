"""A captured step (.mwc, traces/capture/FORMAT.md) as `verify` needs it: kernels, copies and memory in host order."""

import gzip
import json
import os

from .errors import ApplyError

DEVICE = "hbm"
TYPES = ("storage", "alloc", "free", "op", "copy", "collective", "event", "synchronize", "step", "loss", "end")


class Captured:
    """`records`: (type, record), in host order. `storages`: number to its record."""

    def __init__(self, path):
        self.path = os.fspath(path)
        lines = self._lines()
        self.header = self._object(0, lines[0]) if lines else {}
        if self.header.get("format") != "memwall-capture":
            raise ApplyError(f"{self.path}: found no captured step; expected what memwall_capture writes (.mwc or .mwc.gz).")
        self.storages, self.records = {}, []
        for i, line in enumerate(lines[1:], 2):
            record = self._object(i, line)
            kind = next((key for key in TYPES if key in record), None)
            if kind is None:
                raise ApplyError(f"{self.path}, line {i}: found a record of unknown type; expected one of {', '.join(TYPES)}.")
            if kind == "storage":
                self.storages[record["storage"]] = record
            else:
                self._require_storages(i, kind, record)
                self.records.append((kind, record))

    def _lines(self):
        try:
            with open(self.path, "rb") as file:
                data = file.read()
            if data[:2] == b"\x1f\x8b":
                data = gzip.decompress(data)
            return data.decode("utf-8").splitlines()
        except (OSError, EOFError, UnicodeDecodeError) as e:
            raise ApplyError(f"{self.path}: cannot be read: {e}.") from e

    def _object(self, number, line):
        try:
            found = json.loads(line)
        except ValueError as e:
            raise ApplyError(f"{self.path}, line {number}: found what is no JSON ({e}).") from e
        if not isinstance(found, dict):
            raise ApplyError(f"{self.path}, line {number}: found {line[:40]}; expected an object.")
        return found

    def _require_storages(self, number, kind, record):
        used = [record[kind]] if kind in ("alloc", "free") else [*record.get("reads", ()), *record.get("writes", ())]
        for storage in used:
            if storage not in self.storages:
                raise ApplyError(f"{self.path}, line {number}: found storage {storage}, which no line before describes.")

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
