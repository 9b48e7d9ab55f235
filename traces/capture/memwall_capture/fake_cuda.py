"""torch.cuda where there is none: one device that knows no time. Streams and events are recorded as the program uses
them; memory statistics are zero, because nothing is allocated."""

import itertools
import types

import torch
from torch.utils._python_dispatch import _disable_current_modes

CAPABILITY = (9, 0)


class FakeStream:
    """Stands in for torch.cuda.Stream."""

    device_owner = event_type = None

    def __init__(self, device=None, priority=0, **_):
        self.number = next(self.device_owner.stream_numbers)
        self.device, self.priority = torch.device("cuda", 0), priority
        self.stream_id, self.device_index, self.cuda_stream = self.number, 0, self.number

    def record_event(self, event=None):
        event = event or self.event_type()
        event.record(self)
        return event

    def wait_event(self, event):
        event.wait(self)

    def wait_stream(self, stream):
        self.wait_event(stream.record_event())

    def synchronize(self):
        self.device_owner.synchronize("stream", stream=self.number)

    def query(self):
        return True

    def is_capturing(self):
        return False

    def __enter__(self):
        self.device_owner.streams.append(self)
        return self

    def __exit__(self, *_):
        self.device_owner.streams.pop()

    def __eq__(self, other):
        return isinstance(other, FakeStream) and other.number == self.number

    def __hash__(self):
        return hash(self.number)


class FakeEvent:
    """Stands in for torch.cuda.Event."""

    device_owner = None

    def __init__(self, *_args, **_kwargs):
        self.number = None

    def record(self, stream=None):
        owner = self.device_owner
        self.number = next(owner.event_numbers)
        owner.event("record", self.number, stream or owner.streams[-1])

    def wait(self, stream=None):
        if self.number is not None:
            self.device_owner.event("wait", self.number, stream or self.device_owner.streams[-1])

    def synchronize(self):
        if self.number is not None:
            self.device_owner.synchronize("event", number=self.number)

    def query(self):
        return True

    def elapsed_time(self, _end):
        return 0.0


class _Streams:
    """What streams and events are told, and tell the recorder."""

    def __init__(self, device):
        self.device = device
        self.stream_numbers, self.event_numbers = itertools.count(), itertools.count()
        self.streams = []

    def event(self, call, number, stream):
        if self.device.recorder is not None:
            self.device.recorder.event(call, number, stream.number)

    def synchronize(self, what, **keys):
        if self.device.recorder is not None:
            self.device.recorder.synchronize(what, **keys)

    def make_current(self, stream):
        if stream is not None:
            self.streams[-1] = stream


class _CurrentDevice:
    """torch.cuda.device: there is only one."""

    def __init__(self, _device=None):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def patch_all(device, patch):
    cuda = torch.cuda
    owner = _Streams(device)
    Event = type("Event", (FakeEvent,), {"device_owner": owner})
    Stream = type("Stream", (FakeStream,), {"device_owner": owner, "event_type": Event})
    default = Stream()
    owner.streams.append(default)
    device.storages.stream = lambda: owner.streams[-1].number

    properties = types.SimpleNamespace(
        name="memwall fake device", major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=80 << 30,
        multi_processor_count=132, warp_size=32, L2_cache_size=50 << 20, is_integrated=False,
        regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048, max_threads_per_block=1024,
        shared_memory_per_block=48 << 10, shared_memory_per_block_optin=227 << 10)
    answers = {
        "is_available": True, "device_count": 1, "current_device": 0, "is_bf16_supported": True,
        "is_initialized": False,
        "get_device_capability": CAPABILITY, "get_device_name": properties.name, "get_device_properties": properties,
        "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0,
        "memory_stats": {}, "mem_get_info": (80 << 30, 80 << 30), "is_current_stream_capturing": False,
        "empty_cache": None, "reset_peak_memory_stats": None, "set_device": None, "manual_seed": None,
        "manual_seed_all": None, "init": None, "_lazy_init": None, "_maybe_exchange_device": 0, "_exchange_device": 0}
    for name, value in answers.items():
        patch(cuda, name, lambda *_a, _value=value, **_k: _value)
    patch(cuda, "device", _CurrentDevice)
    patch(cuda, "synchronize", lambda *_a, **_k: owner.synchronize("device"))
    patch(cuda, "Stream", Stream)
    patch(cuda, "Event", Event)
    patch(cuda, "current_stream", lambda *_a, **_k: owner.streams[-1])
    patch(cuda, "default_stream", lambda *_a, **_k: default)
    patch(cuda, "stream", lambda stream: stream if stream is not None else _CurrentDevice())
    patch(cuda, "set_stream", owner.make_current)
    patch(torch, "Stream", Stream)
    patch(torch, "Event", Event)
    accelerator = getattr(torch, "accelerator", None)
    for name, answer in (("current_stream", lambda *_a, **_k: owner.streams[-1]), ("set_stream", owner.make_current),
                         ("synchronize", lambda *_a, **_k: owner.synchronize("device"))):
        if hasattr(accelerator, name):
            patch(accelerator, name, answer)
    patch(torch.Tensor, "record_stream", lambda self, stream: device.storages.used_on(self, stream.number))

    def rng_state(*_args, **_kwargs):
        """As a generator on the device has it; nothing is drawn from it."""
        with _disable_current_modes():
            return torch.zeros(16, dtype=torch.uint8)

    patch(cuda, "get_rng_state", rng_state)
    patch(cuda, "get_rng_state_all", lambda: [rng_state()])
    for name in ("set_rng_state", "set_rng_state_all", "seed", "seed_all"):
        patch(cuda, name, lambda *_a, **_k: None)
    patch(cuda, "initial_seed", lambda *_a, **_k: 0)
    patch(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
