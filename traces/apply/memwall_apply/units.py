"""Modules whose forward runs again in backward, by torch.utils.checkpoint without reentrance.

The `forward` of each module is replaced on the instance: `Module.__call__` with its hooks stays outside, so that what
`fully_shard` and DistributedDataParallel hang there gathers parameters before the unit runs, in forward and again before
its backward. A unit of several modules in a row runs where the first of them is called, all of them in one; the later
ones then hand on what it made.
"""

import contextlib
import functools
import weakref

import torch
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import (CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts)

from .errors import ApplyError


class Unit:
    """`names`: of `modules`, which are called one after the other."""

    def __init__(self, names, modules, group):
        self.names, self.modules, self.group = names, modules, group
        self.forwards = [module.forward for module in modules]
        self.chain = None  # what the modules behind the first are to be called with, while a forward goes on
        self.inside = False
        self.runs = self.reruns = 0
        self.watched = []  # (weak reference to a tensor that the unit was given, its version behind the unit)

    @property
    def text(self):
        return " + ".join(self.names)

    def install(self):
        for i, module in enumerate(self.modules):
            module.forward = in_place_of(self.forwards[i], functools.partial(self._later, i) if i else self._first)

    def remove(self):
        for module in self.modules:
            module.__dict__.pop("forward", None)

    # ---- forward

    def _first(self, *inputs, **named):
        if not torch.is_grad_enabled():
            return self.forwards[0](*inputs, **named)
        if torch.compiler.is_compiling():
            return self._compiled(inputs, named)
        self._refuse_separate_shards()
        given = [(t, t._version) for t in _tensors((inputs, named))]
        held = _held_by_objects((inputs, named))
        out = checkpoint(self._run, *inputs, use_reentrant=False, preserve_rng_state=self.group.preserve_rng,
                         early_stop=self.group.early_stop, context_fn=self._contexts,
                         respect_saved_tensors_hooks=False, **named)  # what is kept inside stays: no plan moves it
        self.runs += 1
        self._refuse_changed(given)
        for name, tensors in _held_by_objects((inputs, named)).items():
            if held.get(name) != tensors:
                raise ApplyError(
                    f"The unit {self.text} puts tensors into what it is given, an object of class {name}, and backward runs it "
                    "a second time; expected none. A cache of keys and values is switched off by model.config.use_cache = False.")
        self.watched = [(weakref.ref(t), version) for t, version in given]
        return self._begin_chain(out, inputs, named)

    def _compiled(self, inputs, named):
        """As torch.compile sees it. Where it cannot make one graph of the unit it calls this as it is, without compiling."""
        out = checkpoint(self._run, *inputs, use_reentrant=False,
                         context_fn=functools.partial(_compiled_contexts, self._policy, self._contexts), **named)
        return self._begin_chain(out, inputs, named)

    def _begin_chain(self, out, inputs, named):
        """The later modules have run already; what the last of them gives is handed on when that is called."""
        if len(self.modules) == 1:
            return out
        self.chain = (out, _Pending(self), inputs[1:], named)
        return self.chain[1]

    def _run(self, *inputs, **named):
        if len(self.modules) == 1:
            return self.forwards[0](*inputs, **named)
        self.inside = True
        try:
            out = self.forwards[0](*inputs, **named)
            for module in self.modules[1:]:
                out = module(_first_of(out), *inputs[1:], **named)
        finally:
            self.inside = False
        return out

    def _later(self, i, x, *inputs, **named):
        if self.inside or self.chain is None:
            return self.forwards[i](x, *inputs, **named)
        out, pending, others, names = self.chain
        if x is not pending:
            raise ApplyError(
                f"The plan runs {self.text} again as one unit, and {self.names[i]} is called with something else than "
                f"{self.names[i - 1]} gave; expected modules in a row. Plan with units of one module each.")
        if not _same(inputs, others) or not _same(named, names):
            raise ApplyError(
                f"The plan runs {self.text} again as one unit, and {self.names[i]} is called with other arguments than "
                f"{self.names[0]}; expected the same besides the first. Plan with units of one module each.")
        if i < len(self.modules) - 1:
            return pending
        self.chain = None
        return out

    # ---- refusals that only a call can tell

    def _refuse_separate_shards(self):
        if len(self.modules) == 1 or not torch.distributed.is_available():
            return
        from torch.distributed.fsdp import FSDPModule
        states = {id(module._get_fsdp_state()) if isinstance(module, FSDPModule) else None for module in self.modules}
        if len(states) > 1 or (states != {None} and not isinstance(self.modules[0], FSDPModule)):
            raise ApplyError(
                f"The plan runs {self.text} again as one unit, and fully_shard was called on each of these modules by itself: "
                "the later ones would run without their parameters. Expected fully_shard on none of them, or on all "
                "together (a list of modules). Plan with units of one module each.")

    def _refuse_changed(self, given):
        for tensor, version in given:
            if tensor._version != version:
                raise ApplyError(
                    f"The unit {self.text} changes what it is given in place, so that a second run would start from other "
                    "values. Expected a unit that holds the operator which makes its input, too; memwall joins them with "
                    "--executable=torch.")

    def end_of_forward(self):
        """Of the whole model. A unit's input that is changed behind it cannot be what a second run starts from."""
        if self.chain is not None:
            missing = " + ".join(self.names[1:])
            self.chain = None
            raise ApplyError(f"The plan runs {self.text} again as one unit, and {missing} was not called behind "
                             f"{self.names[0]}; expected modules in a row. Plan with units of one module each.")
        for reference, version in self.watched:
            tensor = reference()
            if tensor is not None and tensor._version != version:
                raise ApplyError(f"What the unit {self.text} was given is changed in place behind it, so that a second run would "
                                 "start from other values. Expected a unit that begins before the operator that makes it.")
        self.watched = []

    # ---- the second run

    def _contexts(self):
        forward, again = contextlib.nullcontext(), contextlib.nullcontext()
        if self.group.save_ops:
            forward, again = create_selective_checkpoint_contexts(self._policy)
        return forward, _SecondRun(self, again)

    def _policy(self, _context, op, *_args, **_named):
        name = op._schema.name
        return CheckpointPolicy.MUST_SAVE if name in self.group.save_ops else CheckpointPolicy.PREFER_RECOMPUTE


class _Pending:
    """What a module of a unit gives while others of the unit follow: nothing that anybody but the next of them may use."""

    def __init__(self, unit):
        object.__setattr__(self, "unit", unit)

    def __getitem__(self, index):
        return self if index == 0 else self._refuse()  # modules may return tuples

    def __getattr__(self, name):
        return self._refuse()

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return next(_pending_in((args, kwargs or {})))._refuse()

    def _refuse(self, *_):
        unit = object.__getattribute__(self, "unit")
        raise ApplyError(f"The plan runs {unit.text} again as one unit, and what one of them gives is used by others than the "
                         "next; expected modules in a row. Plan with units of one module each.")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __matmul__ = __iter__ = __len__ = _refuse


def _pending_in(value):
    if isinstance(value, _Pending):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _pending_in(one)


def _compiled_contexts(policy, contexts):
    """In one graph of forward and backward statistics are updated once and random numbers are the same, so that what the
    second run leaves out needs no care; there, selective checkpointing only marks what is kept."""
    if torch._guards.TracingContext.try_get() is not None:
        return create_selective_checkpoint_contexts(policy)
    return contexts()


class _SecondRun:
    """Around the second run of a unit. BatchNorm has counted this batch already: its counter is hidden, and its averages take
    nothing of it (they are saved for backward, so that the operator must have them). No other buffer may be updated.
    Entered anew for every backward through a retained graph."""

    def __init__(self, unit, selective):
        self.unit, self.selective = unit, selective

    def __enter__(self):
        self.unit.reruns += 1
        modules = [m for module in self.unit.modules for m in module.modules()]
        self.norms = [(m, m.momentum, m.num_batches_tracked) for m in modules
                      if isinstance(m, _BatchNorm) and m.training and m.track_running_stats]
        known = {id(b) for norm, _, _ in self.norms for b in norm.buffers(recurse=False)}
        self.buffers = [(name, b, b._version) for module in self.unit.modules for name, b in module.named_buffers()
                        if id(b) not in known]
        for norm, _, _ in self.norms:
            norm.momentum, norm.num_batches_tracked = 0.0, None
        self.selective.__enter__()

    def __exit__(self, *error):
        self.selective.__exit__(*error)
        for norm, momentum, counter in self.norms:
            norm.momentum, norm.num_batches_tracked = momentum, counter
        for name, buffer, version in self.buffers:
            if buffer._version != version:
                raise ApplyError(f"The unit {self.unit.text} updates its buffer {name} whenever it runs, and backward runs it "
                                 "a second time; expected a unit without such a buffer (BatchNorm's are known).")


def in_place_of(original, function):
    """`function` with the name and signature of what it replaces."""
    @functools.wraps(original)
    def forward(*inputs, **named):
        return function(*inputs, **named)

    return forward


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one)


def _held_by_objects(value):
    """By class: which tensors the objects in nested arguments hold (a cache of keys and values, say)."""
    found = {}

    def look(one, owner, depth):
        if isinstance(one, torch.Tensor):
            if owner is not None:
                found.setdefault(owner, []).append((id(one), one._version))
        elif isinstance(one, (list, tuple)):
            for inner in one:
                look(inner, owner, depth)
        elif isinstance(one, dict):
            for inner in one.values():
                look(inner, owner, depth)
        elif depth and hasattr(one, "__dict__") and not isinstance(one, (torch.nn.Module, type)) and not callable(one):
            found.setdefault(owner or type(one).__name__, [])
            for inner in vars(one).values():
                look(inner, owner or type(one).__name__, depth - 1)

    look(value, None, 3)
    return found


def _first_of(out):
    return out[0] if isinstance(out, tuple) else out


def _same(one, other):
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return one is other
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return one is other or one == other
