"""Copies between device and host on two streams of their own, and page-locked memory that is used again.

Where there is no device with streams (tensors on the CPU: tests of the bookkeeping) everything happens at once.
"""

import torch


class Streams:
    """`out` and `back`: copies to the host and from it. Every wait is of one stream for an event of another, and never
    made while the stream that is waited for is the current one."""

    def __init__(self, device, side_streams, blocking):
        device = torch.device(device)
        self.real = device.type == "cuda"
        self.device = device if device.index is not None else None  # None: the current one
        self.blocking = blocking  # pageable host memory: copies wait
        side = self.real and side_streams
        self.out = torch.cuda.Stream(self.device) if side else None
        self.back = torch.cuda.Stream(self.device) if side else None

    def current(self):
        """The device's current stream, where there are several to choose from."""
        return None if self.out is None else torch.cuda.current_stream(self.device)

    def copy(self, side, target, source, after=None):
        """Copies once all that is queued on the current stream has ended, and `after` (an event) has come. Returns
        the event of its end; None: nothing to wait for."""
        if not self.real:
            target.copy_(source)
            return None
        if side is None:
            if after is not None:
                torch.cuda.current_stream(self.device).wait_event(after)
            target.copy_(source, non_blocking=not self.blocking)
            return torch.cuda.current_stream(self.device).record_event()
        ready = torch.cuda.current_stream(self.device).record_event()
        side.wait_event(ready)
        if after is not None:
            side.wait_event(after)
        with torch.cuda.stream(side):
            target.copy_(source, non_blocking=not self.blocking)
        return side.record_event()

    def copy_all(self, side, pairs):
        """(target, source) each, once all that is queued on the current stream has ended; it then waits for them."""
        if side is None:
            for target, source in pairs:
                target.copy_(source, non_blocking=self.real and not self.blocking)
            return
        side.wait_event(torch.cuda.current_stream(self.device).record_event())
        with torch.cuda.stream(side):
            for target, source in pairs:
                target.copy_(source, non_blocking=not self.blocking)
        torch.cuda.current_stream(self.device).wait_event(side.record_event())

    def synchronize(self, side):
        """The host waits for the copies."""
        if self.real:
            (side or torch.cuda.current_stream(self.device)).synchronize()

    def wait(self, event, stream=None):
        """`stream` (None: the current one) goes on when the copy has ended."""
        if event is not None and self.out is not None:
            (stream or torch.cuda.current_stream(self.device)).wait_event(event)

    def use(self, tensor, home):
        """The current stream reads memory of the pool of `home`, which may be used again when that reading has ended."""
        current = self.current()
        if current is not None and current != home:
            tensor.record_stream(current)


class HostPool:
    """Host memory by size, kept from step to step: page-locking costs milliseconds each time."""

    GRANULE = 512

    def __init__(self, pinned):
        self.pinned = pinned
        self.free = {}
        self.bytes = 0  # of all that was ever allocated

    def take(self, size):
        """(memory of at least `size` bytes as bytes, event that the next write of it must wait for)."""
        size = -(-size // self.GRANULE) * self.GRANULE
        waiting = self.free.get(size)
        if waiting:
            return waiting.pop(0)
        self.bytes += size
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=self.pinned), None

    def give(self, memory, read):
        """`read`: the event of the last copy out of it."""
        self.free.setdefault(memory.numel(), []).append((memory, read))
