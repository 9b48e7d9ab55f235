"""Offload of activations as a program does it in PyTorch: one pair of saved-tensor hooks, copies on two side streams.

What autograd saves is copied to pinned host memory once per storage, on a stream that waits for the compute stream.
The newest copies keep their device memory (a stash, as in torchtune's OffloadActivations); an older one's is given up
once the compute stream waits for its copy. Backward's nodes bring storages back on another stream, some nodes ahead, in
the order that the step before had. Memory that comes back is the compute stream's: it is reused in that stream's order.
"""

import contextlib

import torch
from torch.multiprocessing.reductions import StorageWeakRef

STASH = 5


class _Travelling:
    """One storage that autograd saves."""

    def __init__(self, tensor, number, bytes_):
        self.reference, self.number, self.bytes = StorageWeakRef(tensor.untyped_storage()), number, bytes_
        self.dtype = tensor.dtype
        self.host = self.device = self.arrived = None
        self.saved = 0  # tensors of it that have not been asked for yet


class _Saved:
    """What autograd holds instead of the tensor: it, or where it lies in a storage that travels."""

    def __init__(self, storage, tensor, stays):
        self.storage, self.tensor = storage, tensor if stays else None
        self.dtype, self.layout = tensor.dtype, (tensor.shape, tensor.stride(), tensor.storage_offset())


class OffloadActivations:
    """`first`: so many storages of at least `min_bytes` travel, in the order in which autograd saves them; None: all."""

    def __init__(self, stays, first, ahead, min_bytes):
        self.stays = {tensor.untyped_storage()._cdata for tensor in stays}
        self.first, self.ahead, self.min_bytes = first, ahead, min_bytes
        self.out, self.back = torch.cuda.Stream(), torch.cuda.Stream()
        self.order = []  # numbers of storages by the node that first asks for them, of the step before
        self._begin()

    def _begin(self):
        self.known, self.travelling, self.stash, self.nodes, self.node = {}, [], [], [], None

    @contextlib.contextmanager
    def forward(self):
        self.order = [[storage.number for storage in node] for node in self.nodes]
        self._begin()
        with torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack):
            yield
        # Those still in flight: the program goes on to backward, and does not wait.
        while self.stash:
            self._give_up()

    def end(self):
        """Of the step: what is known of it but the order."""
        self.known, self.travelling = {}, []

    def _pack(self, tensor):
        raw = tensor.untyped_storage()
        if tensor.device.type != "cuda" or raw._cdata in self.stays or raw.nbytes() < self.min_bytes:
            return tensor
        storage = self.known.get(raw._cdata)
        if storage is None or storage.reference.expired():
            storage = self.known[raw._cdata] = _Travelling(tensor, len(self.travelling), raw.nbytes())
            self.travelling.append(storage)
            if self.first is None or storage.number < self.first:
                self._send(storage, tensor)
        storage.saved += 1
        return _Saved(storage, tensor, storage.host is None)

    def _send(self, storage, tensor):
        count = storage.bytes // tensor.element_size()
        with torch.no_grad():
            device = tensor.detach().as_strided((count,), (1,), 0)
            storage.host = torch.empty(count, dtype=tensor.dtype, device="cpu", pin_memory=True)
            self.out.wait_event(torch.cuda.current_stream().record_event())
            with torch.cuda.stream(self.out):
                storage.host.copy_(device, non_blocking=True)
            self.stash.append((device, self.out.record_event()))
        while len(self.stash) > STASH:
            self._give_up()

    def _give_up(self):
        _, left = self.stash.pop(0)
        torch.cuda.current_stream().wait_event(left)

    def _unpack(self, saved):
        if isinstance(saved, torch.Tensor):
            if not self.nodes:
                self._fetch_ahead(0)
            return saved
        storage, node = saved.storage, torch._C._current_autograd_node()
        if not self.nodes:
            self._fetch_ahead(0)
        if not any(storage in others for others in self.nodes):
            if node is None or node is not self.node:
                self.node = node
                self.nodes.append([])
                self._fetch_ahead(len(self.nodes) - 1)
            self.nodes[-1].append(storage)
        storage.saved -= 1
        if saved.tensor is not None:
            return saved.tensor
        if storage.device is None:
            self._fetch(storage)
        torch.cuda.current_stream().wait_event(storage.arrived)
        tensor = storage.device if saved.dtype == storage.dtype else storage.device.view(saved.dtype)
        tensor = tensor.as_strided(*saved.layout)
        if storage.saved == 0:
            storage.device = None
        return tensor

    def _fetch_ahead(self, node):
        for numbers in self.order[node:node + self.ahead + 1]:
            for number in numbers:
                storage = self.travelling[number]
                if storage.host is not None and storage.device is None and storage.saved > 0:
                    self._fetch(storage)

    def _fetch(self, storage):
        with torch.no_grad():
            storage.device = torch.empty(storage.host.shape, dtype=storage.dtype, device="cuda")
            self.back.wait_event(torch.cuda.current_stream().record_event())
            with torch.cuda.stream(self.back):
                storage.device.copy_(storage.host, non_blocking=True)
            storage.arrived = self.back.record_event()
