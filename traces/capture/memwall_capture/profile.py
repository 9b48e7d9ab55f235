"""What torch.profiler (Kineto) saw of a step: calls on the host, and what each put on the device.

Read from the trace that the profiler exports, whose form is the same in all versions since 1.8: complete events
(ph "X") with a category, microseconds, and a correlation number by which work on the device names its call.
"""

import bisect
import json
import os
import tempfile

MARK = "memwall#"  # how the recorder's ranges are called; the number of the operator follows
STEP = MARK + "step"
CALLS, WORK = ("cuda_runtime", "cuda_driver"), ("kernel", "gpu_memcpy", "gpu_memset")
WAITS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cuStreamSynchronize",
         "cuCtxSynchronize", "cuEventSynchronize")

DEEPEST = 16  # operators within operators


class Call:
    """One call of the driver. `work`: what it put on the device, [(name, begin, end)]; times in microseconds."""

    __slots__ = ("name", "begin", "end", "thread", "work", "operator")

    def __init__(self, event):
        self.name, self.thread = event["name"], event["tid"]
        self.begin = float(event["ts"])
        self.end = self.begin + float(event.get("dur", 0))
        self.work, self.operator = [], None

    @property
    def waits(self):
        return self.name in WAITS

    def duration(self):
        return sum(end - begin for _, begin, end in self.work)


class Profile:
    """Calls within the step, in the order in which they began."""

    def __init__(self, events):
        events = [e for e in events if e.get("ph") == "X"]
        step = [e for e in events if e["name"] == STEP and e.get("cat") == "user_annotation"]
        self.begin = float(step[0]["ts"]) if step else min((float(e["ts"]) for e in events), default=0.0)
        self.end = self.begin + float(step[0]["dur"]) if step else float("inf")
        host = [e for e in events if e.get("cat") in (*CALLS, "cpu_op", "user_annotation")
                and self.begin <= float(e["ts"]) <= self.end]
        # What the profiler writes down costs time where it begins.
        self.starts = sorted(float(e["ts"]) for e in host)
        pairs = [(Call(e), e) for e in host if e["cat"] in CALLS]
        by_correlation = {e["args"]["correlation"]: call for call, e in pairs if "correlation" in e.get("args", {})}
        for e in events:
            call = by_correlation.get(e.get("args", {}).get("correlation")) if e.get("cat") in WORK else None
            if call is not None:
                begin = float(e["ts"])
                call.work.append((e["name"], begin, begin + float(e.get("dur", 0))))
        self.calls = sorted((c for c, _ in pairs if c.work or c.waits), key=lambda c: c.begin)
        for call in self.calls:
            call.work.sort(key=lambda work: work[1])
        self._find_operators(host)

    def _find_operators(self, host):
        """Each call's operator: the number of the innermost mark of its thread around it."""
        marks = {}
        for e in host:
            if e["name"].startswith(MARK) and e["name"] != STEP:
                begin = float(e["ts"])
                marks.setdefault(e["tid"], []).append((begin, begin + float(e["dur"]), int(e["name"][len(MARK):])))
        for ranges in marks.values():
            ranges.sort()
        for call in self.calls:
            ranges = marks.get(call.thread, [])
            i = bisect.bisect_right(ranges, (call.begin, float("inf"), 0)) - 1
            outermost = max(0, i - DEEPEST)
            while i > outermost and ranges[i][1] < call.begin:  # it ended before; one around it began earlier
                i -= 1
            if i >= 0 and ranges[i][1] >= call.begin:
                call.operator = ranges[i][2]

    def launches(self):
        return [c for c in self.calls if c.work]

    def events_between(self, begin, end):
        return bisect.bisect_left(self.starts, end) - bisect.bisect_left(self.starts, begin)


def read(profiler):
    """The Profile of a torch.profiler.profile that has stopped."""
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8", errors="replace") as file:
            return Profile(json.load(file)["traceEvents"])
    finally:
        os.unlink(path)
