"""How long a step takes without and with the profiler, and what the profiler saw.

The same step runs several times: as it is; with the profiler; and, elsewhere, with the recorder. Their difference is
what the profiler costs.
"""

import contextlib
import statistics
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from . import profile as kineto


class StepTimes:
    """`device`: "cuda", or "cpu" where only the host's side is of interest. Times in microseconds: of the host until
    the step's last call has returned, and of all until the device is done."""

    def __init__(self, device="cuda"):
        self.device = device
        self.plain, self.profiled = [], []  # (host, all)
        self.profile = None

    def _synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    @contextlib.contextmanager
    def _timed(self, times):
        self._synchronize()
        begin = time.perf_counter_ns()
        yield
        host = time.perf_counter_ns()
        self._synchronize()
        times.append(((host - begin) / 1e3, (time.perf_counter_ns() - begin) / 1e3))

    @contextlib.contextmanager
    def without_profiler(self):
        with self._timed(self.plain):
            yield

    @contextlib.contextmanager
    def with_profiler(self):
        with profiler(self.device) as running:
            with self._timed(self.profiled), record_function(kineto.STEP):
                yield
        self.profile = kineto.read(running)

    def overhead(self):
        """Of the profiler, in microseconds of the host per event that it wrote down."""
        if not self.plain or not self.profiled or not self.profile.starts:
            return 0.0
        more = self.profiled[-1][0] - statistics.median(host for host, _ in self.plain)
        return max(0.0, more) / len(self.profile.starts)

    def sentences(self):
        if not self.plain:
            return []
        plain = statistics.median(whole for _, whole in self.plain)
        events, cost = len(self.profile.starts), self.overhead()
        return [f"One step took {plain:.0f} us without the profiler (median of {len(self.plain)}) and "
                f"{self.profiled[-1][1]:.0f} us with it. It cost the host {cost:.3f} us for each of {events} events, "
                "which is taken out of the host's times."]


def profiler(device):
    activities = [ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(ProfilerActivity.CUDA)
    return profile(activities=activities)
