"""Which storages live: every tensor's memory, from the operator that makes it to the last reference."""

import itertools
import weakref

import torch
from torch.utils._python_dispatch import _disable_current_modes


class Storage:
    """One piece of memory. `number` is given when the file is written."""

    __slots__ = ("bytes", "kind", "place", "label", "stream", "born", "dead", "key", "reference", "age",
                 "streams", "__weakref__")

    def __init__(self, size, place, label, stream, key, age):
        self.bytes, self.place, self.label, self.stream, self.key = size, place, label, stream, key
        self.kind = None
        self.age = age  # how many were made before
        self.born = None  # phase in which it was made; None: before the step
        self.dead = False
        self.reference = None
        self.streams = []  # others than its own that use it (Tensor.record_stream)


class Storages:
    """All live storages by the address of their StorageImpl, which is theirs alone until they are freed."""

    def __init__(self, device="cuda"):
        self.device = device  # where kernels run; everything else is host memory
        self.live = {}
        self.ages = itertools.count()
        self.on_alloc = self.on_free = None
        self.stream = lambda: 0

    def on_device(self, tensor):
        return tensor.device.type == self.device

    def of(self, tensor, label=""):
        """The storage below a tensor; made known if it is new."""
        raw = tensor.untyped_storage()
        key = raw._cdata
        storage = self.live.get(key)
        if storage is None:
            storage = self._add(raw, key, tensor.device.type, label)
        return storage

    def _add(self, raw, key, device, label):
        place = "hbm" if device == self.device else "host"
        storage = Storage(raw.nbytes(), place, label, self.stream() if place == "hbm" else 0, key,
                          next(self.ages))
        self.live[key] = storage
        storage.reference = weakref.ref(raw, lambda _: self._dropped(key, storage))
        if self.on_alloc is not None:
            self.on_alloc(storage)
        return storage

    def _dropped(self, key, storage):
        if self.live.get(key) is storage:
            del self.live[key]
        if storage.dead:
            return
        storage.dead = True
        if self.on_free is not None:
            self.on_free(storage)

    def used_on(self, tensor, stream):
        """Tensor.record_stream: the memory is not free before what `stream` has queued by then has ended."""
        for plain in plain_tensors(tensor):
            storage = self.of(plain)
            if storage.place == "hbm" and stream != storage.stream and stream not in storage.streams:
                storage.streams.append(stream)

    def resized(self, raw, old_bytes):
        """UntypedStorage.resize_: to the allocator the old memory is freed and new memory requested."""
        key = raw._cdata
        storage = self.live.get(key)
        if storage is None or raw.nbytes() == old_bytes:
            return
        fresh = Storage(raw.nbytes(), storage.place, storage.label, self.stream(), key, next(self.ages))
        fresh.kind = storage.kind
        if not storage.dead and self.on_free is not None:
            self.on_free(storage)
        storage.dead = True
        self.live[key] = fresh
        fresh.reference = weakref.ref(raw, lambda _: self._dropped(key, fresh))
        if fresh.bytes and self.on_alloc is not None:
            self.on_alloc(fresh)
        if not fresh.bytes:
            fresh.dead = True


def alias_of(tensor):
    """Another tensor of the same memory, of which nothing is recorded."""
    with _disable_current_modes():
        return tensor.detach()


def plain_tensors(value, found=None):
    """Every tensor in nested lists, tuples and dictionaries; those inside of wrapper subclasses (DTensor) too."""
    found = [] if found is None else found
    if isinstance(value, torch.Tensor):
        flatten = getattr(value, "__tensor_flatten__", None)
        if flatten is None:
            found.append(value)
        else:
            for name in flatten()[0]:
                plain_tensors(getattr(value, name), found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            plain_tensors(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            plain_tensors(item, found)
    return found


def gradient_of(parameter):
    """As autograd has it: a parameter whose class watches what the program reads (memwall_apply) is not asked."""
    return torch.Tensor.grad.__get__(parameter)
