"""While a compiler traces: autograd builds and walks graphs of tensors that are not there.

AOTAutograd runs forward and backward on FunctionalTensors. Without a GPU the autograd engine cannot work where these are
on "cuda" (fake_device.py says why), so it is told "meta" here, too: the wrappers are made to ask Python for their device,
and what asks is told by when it asks. What chooses by the device (autocast, attention) hears "cuda".
"""

import contextlib
import sys

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode

from .patches import patches
from .storages import plain_tensors

META = torch.device("meta")
PRIM_DEVICE = torch.ops.prim.device.default
DISPATCH_DEVICE = 10  # the argument of _make_wrapper_subclass behind the class: ask Python for the device
ENGINE = torch.autograd.graph._engine_run_backward.__code__


class _Answers:
    """What is said to who asks for a FunctionalTensor's device."""

    def __init__(self, apply_code, wrappers):
        self.apply_code, self.wrappers = apply_code, wrappers
        self.fresh, self.place = set(), None
        self.nodes = 0  # of the program's graph that have run
        self.mirroring = False  # a tensor is being given the autograd state of another

    def caller(self):
        frame = sys._getframe(2)
        while frame.f_code.co_name == "__torch_dispatch__" or frame.f_code.co_filename in self.wrappers:
            frame = frame.f_back
        return frame

    def answer(self, tensor, caller):
        real = tensor.elem.device
        if real.type != "cuda":
            return real
        if self.mirroring or caller.f_code is ENGINE or caller.f_code is self.apply_code:
            return META
        if id(tensor) in self.fresh and self.place == (self.nodes, id(caller), caller.f_lasti):
            self.fresh.discard(id(tensor))
            return META
        return real

    def expect_history(self, func, args, out, caller):
        """Autograd will now ask for the device of what was made: once each, before C++ returns to Python."""
        self.fresh = {id(t) for t in plain_tensors(out)}
        schema = getattr(func, "_schema", None)
        if schema is not None and schema.is_mutable:
            self.fresh.update(id(t._base) for t in plain_tensors(args) if t._base is not None)
        self.place = (self.nodes, id(caller), caller.f_lasti)


@contextlib.contextmanager
def tracing(apply_code, wrappers):
    """Inside, AOTAutograd traces programs on "cuda" without one. `apply_code`: the frame that calls Function.apply;
    `wrappers`: files of torch whose frames lie between it and who called it."""
    answers = _Answers(apply_code, wrappers)
    with patches() as patch:
        _patch_wrappers(answers, patch)
        _patch_modes(answers, patch)
        yield


def _patch_wrappers(answers, patch):
    make, to_functional = torch.Tensor._make_wrapper_subclass, FunctionalTensor.to_functional
    dispatch, run_node = FunctionalTensor.__torch_dispatch__, torch.fx.Interpreter.run_node

    def make_wrapper(cls, *args, **kwargs):
        if cls is FunctionalTensor:
            args = (*args[:DISPATCH_DEVICE], True, *args[DISPATCH_DEVICE + 1:])
        return make(cls, *args, **kwargs)

    def mirrored(x):
        answers.mirroring = True
        try:
            return to_functional(x)
        finally:
            answers.mirroring = False

    def on_its_own(tensor, func, types, args=(), kwargs=None):
        if func is PRIM_DEVICE:
            return answers.answer(args[0], answers.caller())
        return dispatch(tensor, func, types, args, kwargs)

    def counted(interpreter, node):
        answers.nodes += 1
        return run_node(interpreter, node)

    patch(torch.Tensor, "_make_wrapper_subclass", make_wrapper)
    patch(FunctionalTensor, "to_functional", staticmethod(mirrored))
    patch(FunctionalTensor, "__torch_dispatch__", on_its_own)
    patch(torch.fx.Interpreter, "run_node", counted)


def _patch_modes(answers, patch):
    functional, fake = FunctionalTensorMode.__torch_dispatch__, FakeTensorMode.__torch_dispatch__

    def functional_dispatch(mode, func, types, args=(), kwargs=None):
        if func is PRIM_DEVICE and isinstance(args[0], FunctionalTensor):
            return answers.answer(args[0], answers.caller())
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if device is not None and device.type == "meta" and torch._C._current_graph_task_id() != -1:
            kwargs = {**kwargs, "device": torch.device("cuda", 0)}  # C++ has asked a gradient for its device
        caller = answers.caller()
        out = functional(mode, func, types, args, kwargs)
        answers.expect_history(func, args, out, caller)
        return out

    def fake_dispatch(mode, func, types, args=(), kwargs=None):
        if func is PRIM_DEVICE and isinstance(args[0], FunctionalTensor):
            return answers.answer(args[0], answers.caller())
        return fake(mode, func, types, args, kwargs)

    patch(FunctionalTensorMode, "__torch_dispatch__", functional_dispatch)
    patch(FakeTensorMode, "__torch_dispatch__", fake_dispatch)
