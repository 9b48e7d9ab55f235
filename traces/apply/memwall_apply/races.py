"""Does every copy between host and device wait for what it needs, and does everything that needs it wait for it?

Vector clocks: a stream's work is numbered; an event carries what its stream has done or waited for, a wait adds that to
another stream, and what the host has waited for holds for all that it issues later. Memory that is freed is used again in
the order of the stream from whose pool it comes, so that this stream must know of every use when the host frees it.
"""

from .captured import name_of

HOST = -1


class Races:
    def __init__(self, captured):
        self.captured = captured
        self.clocks = {}  # stream: {stream: how much of its work is known to have ended}
        self.issued = {}  # stream: how much work it was given
        self.events = {}
        self.host = {}
        self.writes, self.reads = {}, {}  # storage: [(stream, number of the work, record, is it a copy)]
        self.found = []

    def run(self):
        """Sentences, one for each access that another one may meet."""
        for kind, record in self.captured.records:
            if kind == "event":
                self._event(record)
            elif kind == "synchronize":
                self._synchronize(record)
            elif kind == "alloc":
                self._alloc(record["alloc"])
            elif kind == "free":
                self._free(record["free"])
            elif kind in ("op", "copy", "collective"):
                self._work(kind, record)
        return self.found

    def _known(self, stream):
        """What work on this stream that is issued now can rely on."""
        clock = dict(self.host)
        _join(clock, self.clocks.get(stream, {}))
        clock[stream] = self.issued.get(stream, 0)
        return clock

    def _event(self, record):
        stream, number = record.get("stream", 0), record["number"]
        if record["event"] == "record":
            self.events[number] = self._known(stream)
        else:
            _join(self.clocks.setdefault(stream, {}), self.events.get(number, {}))

    def _synchronize(self, record):
        what = record["synchronize"]
        if what == "event":
            _join(self.host, self.events.get(record.get("number"), {}))
        elif what == "device":
            for stream in list(self.issued):
                _join(self.host, self._known(stream))
        else:
            _join(self.host, self._known(record.get("stream", 0)))

    def _work(self, kind, record):
        on_host = kind == "op" and record.get("kernels", 1) == 0
        stream = HOST if on_host else record.get("stream", 0)
        known = dict(self.host) if on_host else self._known(stream)
        me = (stream, self.issued.get(stream, 0) + 1, record, kind == "copy")
        for storage in record.get("reads", ()):
            self._require(self.writes.get(storage, ()), known, me, storage)
        for storage in record.get("writes", ()):
            self._require(self.writes.get(storage, ()), known, me, storage)
            self._require(self.reads.get(storage, ()), known, me, storage)
        if not on_host:
            self.issued[stream] = me[1]
            if record.get("blocking") and kind == "copy":
                _join(self.host, self._known(stream))
        for storage in record.get("reads", ()):
            self.reads.setdefault(storage, []).append(me)
        for storage in record.get("writes", ()):
            self.writes[storage], self.reads[storage] = [me], []

    def _require(self, earlier, known, me, storage):
        for stream, number, record, is_copy in earlier:
            if stream in (HOST, me[0]) or known.get(stream, 0) >= number or not (is_copy or me[3]):
                continue
            self.found.append(f"{_text(me[2])} uses {self.captured.label(storage)} and does not wait for {_text(record)}, which "
                              "may still run.")

    def _alloc(self, storage):
        """Whoever had the memory before may still use it in the order of its pool's stream."""
        one = self.captured.storages[storage]
        stream = one.get("stream", 0)
        if one["place"] == "hbm" and self.issued.get(stream, 0):
            self.writes[storage] = [(stream, self.issued[stream], {"name": "what had its memory before", "stream": stream}, False)]

    def _free(self, storage):
        one = self.captured.storages[storage]
        if one["place"] != "hbm":
            return
        known = self._known(one.get("stream", 0))
        for stream, number, record, is_copy in [*self.writes.get(storage, ()), *self.reads.get(storage, ())]:
            if stream != HOST and is_copy and known.get(stream, 0) < number:
                self.found.append(f"{self.captured.label(storage)} is given back while {_text(record)} may still run.")


def _join(clock, other):
    for stream, number in other.items():
        if clock.get(stream, 0) < number:
            clock[stream] = number


def _text(record):
    where = record.get("module")
    what = f"the copy of {record['copy']} bytes from {record['from']} to {record['to']}" if "copy" in record else name_of(record)
    return f"{what} on stream {record.get('stream', 0)}" + (f" in {where}" if where else "")
