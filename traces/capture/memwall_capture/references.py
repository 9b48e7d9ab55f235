"""When the program's own references to a storage end, while autograd still keeps it for backward."""

import weakref


class References:
    """Counts the tensors of each storage that anything but autograd refers to: variables, containers, arguments of
    calls, the cache of autocast. What autograd saves is not among them, as long as the recorder's hook keeps aliases
    that it has made itself (Recorder.pack). Not seen: storages that a program holds without a tensor
    (Tensor.untyped_storage), and tensors that exchange theirs (torch.utils.swap_tensors)."""

    def __init__(self, ended):
        self.ended = ended  # is called with a storage when its last one goes
        self.watched, self.counts = {}, {}

    def watch(self, tensor, storage):
        key = id(tensor)
        _, before = self.watched.get(key, (None, None))
        if before is storage:
            return
        self.counts[storage] = self.counts.get(storage, 0) + 1
        self.watched[key] = (weakref.ref(tensor, lambda _: self._gone(key)), storage)
        if before is not None:  # it has another storage now (Tensor.set_)
            self._less(before)

    def _gone(self, key):
        self._less(self.watched.pop(key)[1])

    def _less(self, storage):
        self.counts[storage] -= 1
        if not self.counts[storage]:
            del self.counts[storage]
            self.ended(storage)

    def clear(self):
        self.watched.clear()
        self.counts.clear()
