"""What autograd saves in one forward pass, by storage: where its content is, and who still needs it."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .errors import ApplyError


class Saved:
    """What autograd holds instead of a tensor: where in which storage it lies, or the tensor itself if that stays."""

    __slots__ = ("storage", "tensor", "dtype", "layout", "version")

    def __init__(self, storage, tensor, stays):
        self.storage, self.tensor = storage, tensor if stays else None
        self.dtype, self.version = tensor.dtype, tensor._version
        self.layout = (tensor.shape, tensor.stride(), tensor.storage_offset())


class SavedStorage:
    """One storage that autograd saves, or that something starts from which is run again."""

    def __init__(self, tensor, retire):
        self.reference = StorageWeakRef(tensor.untyped_storage())
        self.bytes, self.dtype, self.version = tensor.untyped_storage().nbytes(), tensor.dtype, tensor._version
        self.retire = retire  # called when nothing refers to this any more
        self.number = None  # in the order of saving, of those that the plan counts
        self.move = None  # of the plan: it travels
        self.run = None  # recipes.Run: it is made again
        self.device = None  # all of it, on the device, while this holds it
        self.host = self.memory = None  # all of it on the host, in memory of the pool
        self.left = None  # the event of the copy to the host, until a stream has waited for it
        self.arrived = None  # the event of the copy back, until a stream has waited for it
        self.read = None  # the event of the last copy back: the host memory may then be written
        self.saved = self.asked = 0  # tensors of it that autograd holds, and has asked for in this backward
        self.needed_by = 0  # re-runs that start from it and have not happened

    def __del__(self):
        self.retire(self)

    @property
    def expired(self):
        return self.reference.expired()

    def whole(self, tensor):
        """All of the storage below `tensor`, as one row of its elements."""
        return tensor.detach().as_strided((self.bytes // tensor.element_size(),), (1,), 0)

    def view(self, dtype, layout):
        tensor = self.device if dtype == self.dtype else self.device.view(dtype)
        return tensor.as_strided(*layout)

    def check_version(self, version):
        """What left is what was in it when it was saved first; autograd asks for what it is now."""
        if version != self.version:
            raise ApplyError(
                f"A storage of {self.bytes} bytes that autograd saved was changed in place after the plan had sent it to the "
                f"host (its version was {self.version}, is {version}); expected saved tensors to stay as they are.")

    def ask(self):
        if self.asked == self.saved:
            self.asked = 0  # a retained graph asks again
        self.asked += 1

    @property
    def is_over(self):
        """Is this not needed any more to keep it on the device?"""
        stays = self.move is None and self.run is None  # autograd holds its tensors by itself
        return self.needed_by == 0 and (stays or self.asked == self.saved)


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
