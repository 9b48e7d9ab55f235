"""What the host does once more in backward, and which operator of the forward pass each repeats.

Three things say so: the unit that is run again, when torch.utils.checkpoint runs one (its operators in their order);
the memory that an operator reads, followed through copies to the host and back and through repeated operators; the node
of autograd that asks. Names and shapes alone do not: layers are equal.
"""

import torch


class Done:
    """An operator of the forward pass. `roots`: what it read, as Reruns.root says."""

    __slots__ = ("record", "key", "place", "roots", "repeated")

    def __init__(self, record, key, place, roots):
        self.record, self.key, self.place, self.roots, self.repeated = record, key, place, roots, False


class Unit:
    """What was run under one checkpoint."""

    def __init__(self):
        self.ops, self.by_key = [], {}

    def add(self, done):
        self.by_key.setdefault(done.key, []).append(len(self.ops))
        self.ops.append(done)


class _Run:
    """A unit that is being run again. `task`: the call of backward in which."""

    def __init__(self, unit):
        self.unit, self.next, self.used = unit, 0, set()
        self.task = torch._C._current_graph_task_id()

    def take(self, key, roots):
        """The operator that read the same; of several the next one in order."""
        free = [i for i in self.unit.by_key.get(key, ()) if i not in self.used]
        if not free:
            return None
        best = max(free, key=lambda i: (_equal(roots, self.unit.ops[i].roots), i >= self.next, -i))
        self.used.add(best)
        self.next = best + 1
        return self.unit.ops[best]


def _equal(one, other):
    return sum(a == b for a, b in zip(one, other))


class Reruns:
    def __init__(self, storages):
        self.storages = storages
        self.done, self.of_record, self.places = {}, {}, 0  # done: by key, in order
        self.open, self.running = [], []
        self.unpacking = 0  # calls of unpack hooks that have not returned
        self.last_place = None  # of the operator that was repeated last for what is being unpacked
        self.stands_for = {}  # storage -> {offset, or None for all of it: root}
        self.seen = set()     # storages that the forward pass used

    # ---- what stands for what ----

    def root(self, tensor):
        """The (storage, offset in bytes) of the forward pass that the tensor's memory holds again."""
        storage, offset = self.storages.of(tensor), tensor.storage_offset() * tensor.element_size()
        known = self.stands_for.get(storage)
        if known is not None:
            if offset in known:
                return known[offset]
            if None in known:
                return known[None], offset
        return storage, offset

    def copied(self, source, target):
        """Between host and device."""
        root = self.root(source)
        storage, offset = self.storages.of(target), target.storage_offset() * target.element_size()
        known = self.stands_for.setdefault(storage, {})
        if root == (storage, offset):
            known.pop(offset, None)
        else:
            known[offset] = root

    def _overwritten(self, record):
        for storage in record.writes:
            self.stands_for.pop(storage, None)

    @staticmethod
    def key(name, inputs):
        return (name, tuple((tuple(t.shape), t.dtype) for t in inputs))

    @staticmethod
    def _read(name, inputs):
        """What is made in the likeness of a tensor reads nothing of it: it may be another one the second time."""
        return () if name.endswith("_like") else inputs

    # ---- units ----

    def run(self, unit, function, *args):
        """Calls `function`, which does again what the unit did."""
        self.running.append(_Run(unit))
        try:
            return function(*args)
        finally:
            self.running.pop()

    def in_unit(self):
        """A backward that begins in it is no repetition."""
        return bool(self.running) and self.running[-1].task == torch._C._current_graph_task_id()

    # ---- operators ----

    def forward(self, record, name, inputs):
        """An operator of the forward pass; also a copy between host and device, which says by itself what it copied."""
        inputs = self._read(name, inputs)
        roots = tuple(self.root(t) for t in inputs)
        done = Done(record, self.key(name, inputs), self.places, roots)
        self.places += 1
        self.done.setdefault(done.key, []).append(done)
        self.of_record[record] = done
        self.seen.update(record.reads, record.writes)
        if record.type == "op":
            self._overwritten(record)
        for unit in self.open:
            unit.add(done)

    def backward(self, record):
        """Backward's own operator: what it writes is no longer what the forward pass left there."""
        self._overwritten(record)
        self.seen.difference_update(record.writes)

    def repeat(self, record, name, inputs, module, asking, moves):
        """The record that this one repeats, or None. `module`: the one that is running; `asking`: the forward record
        whose node is at work; `moves`: the operator only moves or sets data."""
        inputs = self._read(name, inputs)
        key, roots = self.key(name, inputs), tuple(self.root(t) for t in inputs)
        done = self.running[-1].take(key, roots) if self.in_unit() else None
        if done is None and self.unpacking and not self.in_unit():
            done = self._asked_for(key, roots, self.of_record.get(asking), moves)
        elif done is None:
            done = self._anywhere(key, roots, module)
        if record.type == "op":
            self._overwritten(record)
        if done is None:
            return None
        done.repeated, self.last_place = True, done.place
        for unit in self.open:
            unit.add(done)
        for again, first in zip(record.writes, done.record.writes):
            if again is not first and record.type == "op":
                self.stands_for[again] = {None: first}
        return done.record

    def _possible(self, key, roots):
        """Of equal name and shapes, and nothing that it read is known to be something else."""
        for done in self.done.get(key, ()):
            if not any(a != b and a[0] in self.seen for a, b in zip(roots, done.roots)):
                yield done

    def _asked_for(self, key, roots, asking, moves):
        """What an unpack hook computes was made before the operator whose node asks."""
        place = self.places if asking is None else asking.place
        module = None if asking is None else asking.record.fields["module"]
        found = [done for done in self._possible(key, roots) if done.roots == roots or not moves]
        if not roots and self.last_place is not None:  # the next that reads nothing: they run in the order of forward
            behind = [done for done in found if done.place > self.last_place and not done.repeated]
            if behind:
                return min(behind, key=lambda done: done.place)
        return max(found, default=None, key=lambda done: (
            _equal(roots, done.roots), done.record.fields["module"] == module, done.place < place,
            -abs(place - done.place)))

    def _anywhere(self, key, roots, module):
        found = [done for done in self._possible(key, roots)
                 if done.roots == roots or done.record.fields["module"] == module]
        return max(found, default=None, key=lambda done: (
            _equal(roots, done.roots), done.record.fields["module"] == module, not done.repeated, -done.place))
