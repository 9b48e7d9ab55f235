"""The one pair of saved-tensor hooks. Hooks do not nest (only the innermost is asked), so all that is decided about what
autograd saves is decided here: it stays, travels to the host and comes back, or is made again.

One SavedPass per forward of the model. It lives as long as the autograd graph that refers to it; host memory goes back to
the pool then.
"""

import threading

import torch

from torch.multiprocessing.reductions import StorageWeakRef

from .errors import ApplyError
from .storages import Saved, SavedStorage, is_plain, tensors_of
from .streams import HostPool, Streams


class Hook:
    """What is kept from one forward to the next. `recipes`: recipes.Recipes or None. Tensors on other devices than `device`
    stay where they are."""

    def __init__(self, model, offload, recipes, device):
        self.model, self.offload, self.recipes, self.device = model, offload, recipes, torch.device(device)
        self.device_type = self.device.type
        self.lock = threading.RLock()  # backward may run in several threads
        self.moves = {move.number: move for move in offload.moves} if offload else {}
        self.count_min_bytes = offload.count_min_bytes if offload else 1
        self.given_back_behind = {}  # number: those given back right after it is saved
        self.fetched_where = {}  # number: those that come back where backward first asks for it
        self.place = {}  # number: in the order in which storages come back
        for move in self.moves.values():
            self.given_back_behind.setdefault(move.give_back, []).append(move.number)
        for place, number in enumerate(offload.fetch_order if offload else ()):
            self.fetched_where.setdefault(self.moves[number].fetch, []).append(number)
            self.place[number] = place
        pinned = offload is not None and offload.pinned and self.device_type == "cuda"
        self.pool = HostPool(pinned)
        self.streams = Streams(device, offload is not None and offload.side_streams, not pinned)
        self.node_of = {}  # first number: those that its node of the graph asked for in the backward before
        self.learned = {}  # the same, of this one
        self.counts = {"passes": 0, "sent": 0, "sent_bytes": 0, "back": 0, "back_bytes": 0}

    def open(self, arguments):
        """A forward begins. `arguments`: tensors that the model is given."""
        if self.learned:
            self.node_of, self.learned = self.learned, {}
        self.counts["passes"] += 1
        return SavedPass(self, arguments)

    def retire(self, storage):
        """Nobody will ask for it any more: its memory is used again behind the copies that are under way."""
        if (storage.left is not None or storage.arrived is not None) and torch.cuda.is_available():
            self.streams.wait(storage.left, storage.home)
            self.streams.wait(storage.arrived, storage.home)
        if storage.memory is not None:
            self.pool.give(storage.memory, storage.read or storage.left)


class SavedPass:
    """What autograd saves in one forward of the model, and asks for in its backward."""

    def __init__(self, hook, arguments):
        self.hook = hook
        self.stays = {}  # StorageImpl: a weak reference, with which no other storage gets this address
        self._stay(arguments)
        self._learn_parameters()
        self.has_shards = any(hasattr(module, "_get_fsdp_state") for module in hook.model.modules())
        self.known = {}  # StorageImpl: SavedStorage
        self.numbered = []
        self.in_flight = []  # sent and not given back
        self.node = self.group = None  # (pass of backward, number) of the node that asked last, and what it asked for
        self.runs = {}  # of operators that are run again
        self.asked = set()
        self.due = [-1]  # until backward begins

    def __del__(self):
        for run in self.runs.values():  # they and what they start from refer to each other
            run.forget()

    def _stay(self, tensors):
        for tensor in tensors:
            raw = tensor.untyped_storage()
            if raw._cdata not in self.stays:
                self.stays[raw._cdata] = StorageWeakRef(raw)

    def _learn_parameters(self):
        self._stay(t for _, t in tensors_of(self.hook.model) if is_plain(t))

    # ---- forward

    def pack(self, tensor):
        storage = self.find(tensor)
        if storage is None:
            return Saved(None, tensor, True)
        if storage.number is None and storage.run is None and storage.bytes >= self.hook.count_min_bytes:
            self._count(storage, tensor)
        if storage.counter is not None:
            storage.require_content(tensor, "Autograd saves")
        storage.saved += 1
        return Saved(storage, tensor, storage.run is None and storage.move is None)

    def find(self, tensor):
        """None: it is no concern of the plan: a parameter, a buffer, an input of the model, on another device."""
        if tensor.device != self.hook.device or not is_plain(tensor):
            return None
        raw = tensor.untyped_storage()
        if raw._cdata in self.stays:
            return None
        storage = self.known.get(raw._cdata)
        if storage is None or storage.expired:
            if self.has_shards:  # fully_shard puts gathered parameters into the modules while these run
                self._learn_parameters()
                if raw._cdata in self.stays:
                    return None
            storage = self.known[raw._cdata] = SavedStorage(tensor, self.hook.retire)
        return storage

    def _count(self, storage, tensor):
        storage.number = len(self.numbered)
        self.numbered.append(storage)
        move = self.hook.moves.get(storage.number)
        if move is not None:
            self._send(storage, move, tensor)
        for number in self.hook.given_back_behind.get(storage.number, ()):
            self._give_back(self.numbered[number])

    def _send(self, storage, move, tensor):
        if storage.bytes != move.bytes:
            module, op, _ = move.maker
            raise ApplyError(
                f"The storage number {storage.number} that autograd saves has {storage.bytes} bytes (a tensor of shape "
                f"{tuple(tensor.shape)}); the plan expects {move.bytes} there, made by {op} in {module or 'the model'}. The "
                "program is not the one that was captured: its batch, its settings or its order differ.")
        streams = self.hook.streams
        storage.move = move
        storage.content_is_of(tensor, tensor._version)
        storage.device, storage.home = storage.whole(tensor), self.hook.streams.current()
        storage.memory, read = self.hook.pool.take(storage.bytes)
        storage.host = storage.memory[:storage.device.numel() * storage.dtype.itemsize].view(storage.dtype)
        storage.left = streams.copy(streams.out, storage.host, storage.device, after=read)
        self.in_flight.append(storage)
        self.hook.counts["sent"] += 1
        self.hook.counts["sent_bytes"] += storage.bytes

    def _give_back(self, storage):
        """The device's memory, once the copy out of it has ended: what is queued behind may use it again."""
        self.hook.streams.wait(storage.left, storage.home)
        storage.left = storage.device = None
        self.in_flight.remove(storage)

    def end_of_forward(self):
        for storage in list(self.in_flight):
            self._give_back(storage)
        missing = [number for number in self.hook.moves if number >= len(self.numbered)]
        if missing:
            raise ApplyError(
                f"The plan sends {len(self.hook.moves)} storages to the host, and autograd saved {len(self.numbered)} of at "
                f"least {self.hook.count_min_bytes} bytes inside of the model, so that {len(missing)} never came (number "
                f"{missing[0]} first). What is computed outside of the model (a loss) must move into its forward, or stay.")

    # ---- backward

    def unpack(self, saved):
        with self.hook.lock:
            return self._unpack(saved)

    def _unpack(self, saved):
        storage = saved.storage
        if storage is not None and storage.asked_as is not None:
            self._node_asks(storage.asked_as)
        elif self.due:
            self._fetch_at(*self._begin())
        saved.require_unchanged()
        if saved.tensor is not None:
            return saved.tensor
        self.bring_back(storage)
        tensor = storage.view(saved.dtype, saved.layout)
        storage.ask()
        self.drop_if_over(storage)
        return tensor

    def _begin(self):
        due, self.due = self.due, []
        return due

    def _node_asks(self, number):
        """A node of the graph asks for all that it saved before it runs anything; from the second step on it is known
        what that is when it asks for the first: so that what comes back with any of it does so before operators run
        again for this node. `number`: SavedStorage.asked_as."""
        if number in self.asked:
            return
        self.asked.add(number)
        node = torch._C._current_autograd_node()  # not kept: it keeps the graph
        node = None if node is None else (torch._C._current_graph_task_id(), node._sequence_nr())
        known = self.hook.node_of
        if node is None or node != self.node:
            self.node, self.group = node, [number]
            self.hook.learned[number] = self.group
            self._fetch_at(*self._begin(), *known.get(number, self.group))
        else:
            self.group.append(number)
            if number not in known.get(self.group[0], ()):
                self._fetch_at(number)

    def rerun_asks(self, storage):
        """The node for which operators run again asks for what they start from, too."""
        if storage.asked_as is not None:
            self._node_asks(storage.asked_as)

    def _fetch_at(self, *points):
        due = [number for point in points for number in self.hook.fetched_where.get(point, ())]
        for number in sorted(due, key=self.hook.place.get):
            if number < len(self.numbered) and self.numbered[number].asked == 0:
                self.bring_back(self.numbered[number], waits=False)

    def bring_back(self, storage, waits=True):
        """To the device, from the host or by running again what made it."""
        if storage.device is None:
            if storage.run is not None:
                storage.run.again(self)
            else:
                self._fetch(storage)
        if waits and storage.arrived is not None:
            self.hook.streams.wait(storage.arrived)
            self.hook.streams.use(storage.device, storage.home)

    def _fetch(self, storage):
        streams = self.hook.streams
        with torch.no_grad():
            storage.home = streams.current()
            storage.device = torch.empty(storage.host.shape, dtype=storage.dtype, device=self.hook.device)
            storage.arrived = storage.read = streams.copy(streams.back, storage.device, storage.host)
        self.hook.counts["back"] += 1
        self.hook.counts["back_bytes"] += storage.bytes

    def drop_if_over(self, storage):
        if storage.is_over:
            self.hook.streams.wait(storage.arrived, storage.home)
            storage.arrived = storage.device = None
