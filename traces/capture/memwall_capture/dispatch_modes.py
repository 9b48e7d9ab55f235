"""A program's own TorchDispatchMode above the imaginary device.

Autograd asks, in C++, for the device of what an operator has made: of what the uppermost mode gave back, which may be
other tensors than the device made, after other operators that the mode ran. So the device is told what to expect when
the uppermost mode is done. The question itself is none of the program's: it goes to the device at once.
"""

import functools

import torch.utils._python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode


def patch_all(device, patch, asks_device, caller):
    """`asks_device`: the operator by which autograd asks; `caller`: the frame that called torch."""
    entered = TorchDispatchMode.__enter__
    watched = set()

    def __enter__(mode):
        kind = type(mode)
        if getattr(mode, "_mode_key", None) is None and not kind.__module__.startswith(__package__):  # nor torch's own
            _watch(type(mode))
        return entered(mode)

    def _watch(kind):
        for owner in kind.__mro__:
            own = owner.__dict__.get("__torch_dispatch__")
            if own is None or owner is TorchDispatchMode or owner in watched:
                continue
            watched.add(owner)
            if not isinstance(own, (classmethod, staticmethod)):
                patch(owner, "__torch_dispatch__", _expecting(own))

    def _expecting(original):
        @functools.wraps(original)
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is asks_device:
                return device.answer(args[0], caller())
            device.modes_at_work += 1
            try:
                out = original(self, func, types, args, kwargs or {})
            finally:
                device.modes_at_work -= 1
            device.expect_history(func, args, out, caller())
            return out

        return __torch_dispatch__

    patch(TorchDispatchMode, "__enter__", __enter__)
