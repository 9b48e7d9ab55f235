"""Gives the records of a step the times that were measured.

Two runs of the same step are joined. In one the recorder was on, and a range around each operator says which calls
are its; the recorder makes the host slow there. In the other only the profiler was on: from it come the times. Both
put the same work on the device in the same order, by which a call of the one is found in the other.

    gap_us       host time between the end of the call before and this operator's first call; waiting is not in it
    host_us      from the beginning of its first call to the end of its last; for a blocking copy without the wait
    duration_us  of its kernels or copies on the device, together

What the profiler itself costs the host, `overhead` per event that it writes down, is taken out of gaps and calls.
"""

import difflib
import statistics

RUNS = ("op", "copy", "collective")
# A launch that takes this many times as long as most waited for room in the driver's queue.
BLOCKED, BLOCKED_LEAST_US = 20, 50.0


class Timing:
    """What the join found. `notes` says what it could not."""

    def __init__(self, records, recorded, timed=None, overhead=0.0):
        self.records, self.recorded, self.timed, self.overhead = records, recorded, timed, overhead
        self.notes = []
        self.of_operator = {}
        for record in records:
            if record.type in RUNS and record.mark is not None:
                self.of_operator.setdefault(record.mark, record)

    def join(self):
        owned = self._owned()
        launches = {}
        for call, record in owned:
            launches.setdefault(id(record), []).append(call)
        missing = 0
        for record in self.records:
            if record.type not in RUNS:
                continue
            calls = launches.get(id(record))
            if not calls:
                missing += self._expects_work(record)
                continue
            record.fields["duration_us"] = _round(sum(c.duration() for c in calls))
            if record.type == "op":
                _kernels(record, sum(len(c.work) for c in calls))
        if missing:
            self.notes.append(f"{missing} operators that should run on the device put nothing there; they have no "
                              "duration.")
        if self.timed is not None:
            self._host(owned)
        return self

    @staticmethod
    def _expects_work(record):
        return record.type != "op" or record.fields.get("kernels") != 0

    # ---- which call is whose ----

    def _owned(self):
        """[(call of the run that times, record)], in the order of the calls."""
        source = self.recorded.launches()
        target = source if self.timed is None else self.timed.launches()
        owner = [self.of_operator.get(call.operator) for call in source]
        strangers = [call for call, record in zip(source, owner) if record is None]
        if strangers:
            time = sum(call.duration() for call in strangers)
            self.notes.append(f"{len(strangers)} launches, {time:.0f} us on the device, belong to no operator (code that "
                              "launches by itself); they are not recorded.")
        if self.timed is None:
            return [(c, r) for c, r in zip(source, owner) if r is not None]
        pairs = _aligned(source, target)
        lost = len(source) - len(pairs)
        if lost or len(target) != len(pairs):
            self.notes.append(f"The step was not twice the same: {lost} launches of the recorded run and "
                              f"{len(target) - len(pairs)} of the timed run have no counterpart.")
        return [(target[j], owner[i]) for i, j in pairs if owner[i] is not None]

    # ---- host times ----

    def _host(self, owned):
        record_of = {id(call): record for call, record in owned}
        longest = self._longest_launch()
        waiting = _Waits(self.records)
        cursor, last, done, blocked, before = self.timed.begin, None, set(), 0, 0.0
        for call in self.timed.calls:
            gap = before + self._without_profiler(cursor, call.begin)
            record = record_of.get(id(call))
            if record is None and not call.work:
                before = self._wait(gap, last, waiting)
            elif record is not None:
                before = 0.0
                cost = self._without_profiler(call.begin, call.end)
                if cost > longest:
                    cost, blocked = self._typical, blocked + 1
                fields = record.fields
                if id(record) in done:  # a further kernel of the same operator: what is between is the call's
                    fields["host_us"] = _round(fields["host_us"] + gap + cost)
                else:
                    fields["gap_us"], fields["host_us"] = _round(gap), _round(cost)
                    done.add(id(record))
                last = record
            if record is None and call.work:
                continue  # a launch that nobody owns: the host's time for it stays in the next one's gap
            cursor = max(cursor, call.end)
        if blocked:
            self.notes.append(f"{blocked} calls waited for room in the driver's queue; they count as a usual one.")
        if waiting.unknown:
            self.notes.append(f"{waiting.unknown} waits of the host are not the program's own; they are not recorded.")

    @staticmethod
    def _wait(gap, last, waiting):
        """Gives the time before a wait to what waits. What is left over is the next one's."""
        if last is not None and last.type == "copy" and last.fields.get("blocking") and not waiting.taken(last):
            last.fields["host_us"] = _round(last.fields["host_us"] + gap)  # its own
            return 0.0
        record = waiting.next(last)
        if record is None:
            return gap
        record.fields["gap_us"], record.fields["host_us"] = _round(gap), 0.0
        return 0.0

    def _without_profiler(self, begin, end):
        return max(0.0, end - begin - self.overhead * self.timed.events_between(begin, end))

    def _longest_launch(self):
        costs = [self._without_profiler(c.begin, c.end) for c in self.timed.launches()]
        self._typical = statistics.median(costs) if costs else 0.0
        return max(BLOCKED_LEAST_US, BLOCKED * self._typical)


class _Waits:
    """The program's own waits, each after the operator behind which it was recorded."""

    def __init__(self, records):
        self.unknown = 0
        self.blocking = set()
        self.after, last = {}, None
        for record in records:
            if record.type in RUNS and record.fields.get("kernels") != 0:
                last = record
            elif record.type == "synchronize":
                self.after.setdefault(id(last), []).append(record)

    def taken(self, copy):
        """Has the blocking copy had its wait? The first one behind it is its own."""
        if id(copy) in self.blocking:
            return True
        self.blocking.add(id(copy))
        return False

    def next(self, last):
        found = self.after.get(id(last))
        if found:
            return found.pop(0)
        self.unknown += 1
        return None


def _aligned(source, target):
    """Pairs of launches that put the same work on the device: [(index in source, index in target)]."""
    one = [tuple(work[0] for work in call.work) for call in source]
    other = [tuple(work[0] for work in call.work) for call in target]
    if one == other:
        return [(i, i) for i in range(len(one))]
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return [(block.a + i, block.b + i) for block in matcher.get_matching_blocks() for i in range(block.size)]


def _kernels(record, count):
    if count == 1:
        record.fields.pop("kernels", None)
    else:
        record.fields["kernels"] = count


def _round(us):
    """To the nanosecond: Kineto has no more."""
    return round(us, 3)
