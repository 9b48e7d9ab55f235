"""Random numbers that are not of torch's own generators (those `checkpoint` puts back itself): Python's `random`, numpy's, and
generators that operators are given. A second run draws what the first drew, and does not move them on."""

import random
import sys

import torch
from torch.overrides import TorchFunctionMode


class Generators:
    """Around the first run of one call of a unit. `watch`: looks for them, which costs some time per operator, and 0.1 ms
    for numpy's; for units whose first call has found none this is not done again."""

    def __init__(self, watch):
        self.mode = _Watch() if watch else None
        self.before = _states() if watch else []

    def __enter__(self):
        if self.mode is not None:
            self.mode.__enter__()

    def __exit__(self, *error):
        if self.mode is not None:
            self.mode.__exit__(*error)

    def end_of_first_run(self):
        """Did the run draw any?"""
        self.before = [(get, put, state) for get, put, state in self.before if not _equal(get(), state)]
        if self.mode is not None:
            self.before += [(one.get_state, one.set_state, state) for one, state in self.mode.seen.values()]
            self.mode = None
        return bool(self.before)

    def begin_again(self):
        self.now = [(put, get()) for get, put, _ in self.before]
        for _, put, state in self.before:
            put(state)

    def end_again(self):
        for put, state in self.now:
            put(state)


def _states():
    found = [(random.getstate, random.setstate, random.getstate())]
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        found.append((numpy.get_state, numpy.set_state, numpy.get_state()))
    return found


def _equal(one, other):
    """Of states; numpy's have an array inside."""
    return all(a is b or (a.tobytes() == b.tobytes() if hasattr(a, "tobytes") else a == b) for a, b in zip(one, other))


class _Watch(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = {}  # id: (generator, its state before it was used first)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        for value in (kwargs or {}).values():
            if isinstance(value, torch.Generator) and id(value) not in self.seen:
                self.seen[id(value)] = (value, value.get_state())
        return func(*args, **(kwargs or {}))
