"""What autograd saves in one forward pass, by storage: where its content is, and who still needs it."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .errors import ApplyError


class Saved:
    """What autograd holds instead of a tensor: where in which storage it lies, or the tensor itself if that stays.
    `storage`: None, if it is no concern of the plan."""

    __slots__ = ("storage", "tensor", "counter", "dtype", "layout", "version")

    def __init__(self, storage, tensor, stays):
        self.storage, self.tensor = storage, without_graph(tensor) if stays else None
        self.counter = self.tensor if stays else counter_of(tensor)
        self.dtype, self.version = tensor.dtype, tensor._version
        self.layout = None if stays else (tensor.shape, tensor.stride(), tensor.storage_offset())

    def require_unchanged(self):
        """Without hooks autograd does this itself."""
        if self.counter._version != self.version:
            shape = tuple(self.layout[0] if self.layout else self.tensor.shape)
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor of "
                f"shape {shape} is at version {self.counter._version}; expected {self.version}.")


class SavedStorage:
    """One storage that autograd saves, or that something starts from which is run again."""

    def __init__(self, tensor, retire):
        self.reference = StorageWeakRef(tensor.untyped_storage())
        self.bytes, self.dtype = tensor.untyped_storage().nbytes(), tensor.dtype
        self.counter = self.version = None  # of the content that left, or that is made again: counts changes in place
        self.retire = retire  # called when nothing refers to this any more
        self.number = None  # in the order of saving, of those that the plan counts
        self.move = None  # of the plan: it travels
        self.run = None  # recipes.Run: it is made again
        self.device = None  # all of it, on the device, while this holds it
        self.host = self.memory = None  # all of it on the host, in memory of the pool
        self.home = None  # the stream from whose pool `device` is: its memory is used again in the order of that stream
        self.left = None  # the event of the copy to the host, until `home` has waited for it
        self.arrived = None  # the event of the copy back, while `device` is there: each stream that reads it waits
        self.read = None  # the event of the last copy back: the host memory may then be written
        self.saved = self.asked = 0  # tensors of it that autograd holds, and has asked for in this backward
        self.needed_by = 0  # re-runs that start from it and have not happened

    def __del__(self):
        self.retire(self)

    @property
    def asked_as(self):
        """What names this to the hook, when a node asks: its number, or the operators that make it again, until they have."""
        if self.run is None:
            return self.number
        return None if self.run.done else ("run", self.run.number)

    @property
    def expired(self):
        return self.reference.expired()

    def whole(self, tensor):
        """All of the storage below `tensor`, as one row of its elements."""
        return tensor.detach().as_strided((self.bytes // tensor.element_size(),), (1,), 0)

    def view(self, dtype, layout):
        tensor = self.device
        if dtype != self.dtype:
            whole = tensor.numel() * tensor.element_size() // dtype.itemsize * dtype.itemsize // tensor.element_size()
            tensor = tensor[:whole].view(dtype)
        return tensor.as_strided(*layout)

    def content_is_of(self, tensor, version):
        """What leaves, or is made again, is the content that `tensor` has at that version."""
        self.counter, self.version = counter_of(tensor), version

    def require_content(self, tensor, what):
        """Is the content of `tensor` still that which left, or is made again? Pieces of `unsafe_chunk` and the like count
        their changes apart."""
        now = tensor._version
        if not counts_with(self.counter, tensor):
            same = now == 0 and self.counter._version == self.version
        else:
            same = now == self.version
        if not same:
            how = "after the plan had sent it to the host" if self.run is None else "after an operator that the plan runs again made it"
            raise ApplyError(
                f"{what} a storage of {self.bytes} bytes that was changed in place {how} (its version was {self.version}, is {now}"
                f"{'' if self.counter._version == now else ', counted apart'}); expected content that stays as it is.")

    def ask(self):
        if self.asked == self.saved:
            self.asked = 0  # a retained graph asks again
        self.asked += 1

    @property
    def is_over(self):
        """Is this not needed any more to keep it on the device?"""
        stays = self.move is None and self.run is None  # autograd holds its tensors by itself
        return self.needed_by == 0 and (stays or self.asked == self.saved)


def without_graph(tensor):
    """The same tensor. With its graph nobody would give it up: the graph holds what it has saved."""
    return tensor if tensor.grad_fn is None else _alias(tensor)


def counter_of(tensor):
    """A tensor without memory whose `_version` goes on with that of `tensor`."""
    counter = _alias(tensor)
    counter.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return counter


def _alias(tensor):
    """The same memory, and the same count of changes in place: in a dispatch mode, too, which is below what counts them."""
    with torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.ADInplaceOrView, False):
        return tensor.detach()


def counts_with(counter, tensor):
    """Do both count the same changes in place?"""
    version = tensor._version
    if counter._version != version:
        return False
    set_version = torch._C._autograd._unsafe_set_version_counter
    set_version((counter,), (version + 1,))
    same = tensor._version != version
    set_version((counter,), (version,))
    return same


def tensors_of(module):
    """Parameters and buffers as plain tensors, with names."""
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        yield name, getattr(tensor, "_local_tensor", tensor)


def plain_tensors(value):
    """Tensors with a storage of their own in nested lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        if is_plain(value):
            yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from plain_tensors(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from plain_tensors(one)


def is_plain(tensor):
    """Has it one storage of its own kind? Wrappers (DTensor), sparse and quantized tensors have not. Complex ones stay where
    they are: a storage does not tell which of its views are conjugate."""
    return (tensor.layout is torch.strided and not hasattr(tensor, "__tensor_flatten__") and not tensor.is_quantized
            and not tensor.is_complex() and not tensor.is_neg())
