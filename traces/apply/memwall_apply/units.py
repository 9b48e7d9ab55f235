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
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import (CheckpointPolicy, _CachingTorchDispatchMode, checkpoint,
                                    create_selective_checkpoint_contexts)

from .attributes import Held, Start, Untouchable
from .errors import ApplyError
from .generators import Generators


CHECKPOINTS_OWN = {"preserve_rng_state", "use_reentrant", "context_fn", "determinism_check", "debug", "early_stop",
                   "respect_saved_tensors_hooks"}  # keywords


class Unit:
    """`names`: of `modules`, which are called one after the other."""

    def __init__(self, names, modules, group):
        self.names, self.modules, self.group = names, modules, group
        self.forwards = [module.forward for module in modules]
        self.chain = None  # what the modules behind the first are to be called with, while a forward goes on
        self.inside = False
        self.runs = self.reruns = 0
        self.draws = False  # from other generators than torch's
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
        given = [(t, t._version) for t in _tensors((inputs, named)) if not t.is_inference()]
        call = _Call(self, inputs, named)
        out = checkpoint(call, *call.take_inputs(), use_reentrant=False, preserve_rng_state=self.group.preserve_rng,
                         early_stop=self.group.early_stop, context_fn=call.contexts,
                         respect_saved_tensors_hooks=False)  # what is kept inside stays: no plan moves it
        self._refuse_changed(given)
        for name, tensors in _held_by_objects((inputs, named)).items():
            if call.objects.get(name) != tensors:
                raise ApplyError(
                    f"The unit {self.text} puts tensors into what it is given, an object of class {name}, and backward runs it "
                    "a second time; expected none. A cache of keys and values is switched off by model.config.use_cache = False.")
        call.end_of_first_run()
        self.runs += 1
        self.watched = [one for one in self.watched if one[0]() is not None]
        self.watched += [(weakref.ref(t), version) for t, version in given]
        return self._begin_chain(out, inputs, named)

    def _compiled(self, inputs, named):
        """As torch.compile sees it. Where it cannot make one graph of the unit it calls this as it is, without compiling."""
        run = self._run
        if CHECKPOINTS_OWN & named.keys():
            run, named = functools.partial(self._run, **named), {}
        out = checkpoint(run, *inputs, use_reentrant=False,
                         context_fn=functools.partial(_compiled_contexts, self), **named)
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

    def begin_forward(self):
        """Of the whole model; the one before may have ended with an error."""
        self.chain, self.watched = None, []

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

    def _contexts(self, call=None):
        forward, again = contextlib.nullcontext(), contextlib.nullcontext()
        if self.group.save_ops:
            forward, again = create_selective_checkpoint_contexts(self._policy)
        return forward, _SecondRun(self, again, call)

    def _policy(self, _context, op, *_args, **_named):
        name = op._schema.name
        return CheckpointPolicy.MUST_SAVE if name in self.group.save_ops else CheckpointPolicy.PREFER_RECOMPUTE

    def named_modules(self):
        return [one for module in self.modules for one in module.named_modules()]


class _Call:
    """One call of a unit: what its second run needs to begin as the first did. Lists and dictionaries are copied, since
    the program may change them behind the unit. Keywords are not handed to `checkpoint`, which has some of its own."""

    def __init__(self, unit, inputs, named):
        self.unit, self.original = unit, (inputs, named)
        self.inputs = [_argument(one) for one in inputs]
        self.named = _copied(named)
        self.given = [(t, t._version) for t in _tensors((self.inputs, self.named))
                      if not t.is_inference() and not any(t is one for one in self.inputs)]  # autograd looks at those itself
        self.objects = _held_by_objects((self.inputs, self.named))
        self.held = _held(unit.named_modules(), inside=unit.runs == 0)
        self.generators = Generators(watch=unit.runs == 0 or unit.draws)
        self.start = None

    def take_inputs(self):
        """What `checkpoint` is to be given. It hands the tensors to autograd, whose hooks may send them to the host: they
        are not held here."""
        inputs = self.inputs
        self.inputs = [None if isinstance(one, torch.Tensor) else one for one in inputs]
        return inputs

    def __call__(self, *inputs):
        if self.original is not None:
            (inputs, named), self.original = self.original, None
            with self.generators:
                return self.unit._run(*inputs, **named)
        inputs = [one.tensor if isinstance(one, _Inferred) else _copied(one) for one in inputs]
        return self.unit._run(*inputs, **_copied(self.named))

    def contexts(self):
        return self.unit._contexts(self)

    def end_of_first_run(self):
        name = self.held.changed_in_place()
        if name is not None:
            raise ApplyError(f"The unit {self.unit.text} updates its buffer {name} whenever it runs, and backward runs it a second "
                             "time; expected a unit without such a buffer (BatchNorm's are known), or one that assigns it anew.")
        self.start, self.held = Start(self.unit.text, self.held), None
        self.unit.draws |= self.generators.end_of_first_run()

    def begin_again(self):
        """Puts back what the first run started from."""
        if any(t._version != version for t, version in self.given) or _held_by_objects((self.inputs, self.named)) != self.objects:
            raise ApplyError(f"What the unit {self.unit.text} was given (in a list, by name, or in an object) is changed in place "
                             "behind it, so that a second run would start from other values; expected it to stay as it is "
                             "until backward has ended.")
        (self.start or Start(self.unit.text, self.held)).put()  # the latter: of a backward inside of the unit


class _Pending(Untouchable):
    """What a module of a unit gives while others of the unit follow: nothing that anybody but the next of them may use."""

    def __init__(self, unit):
        super().__init__(f"The plan runs {unit.text} again as one unit, and what one of them gives is used by others than the "
                         "next; expected modules in a row. Plan with units of one module each.")

    def __getitem__(self, index):
        return self if index == 0 else self._refuse()  # modules may return tuples


def _compiled_contexts(unit):
    """In one graph of forward and backward statistics are updated once and random numbers are the same, so that what the
    second run leaves out needs no care; there, selective checkpointing only marks what is kept."""
    if torch._guards.TracingContext.try_get() is None:
        return unit._contexts()
    forward, again = create_selective_checkpoint_contexts(unit._policy)
    forward.__class__ = _CompiledRun
    forward.unit, forward.made = unit, {}
    return forward, again


class _CompiledRun(_CachingTorchDispatchMode):
    """Sees the operators of a unit while it is compiled, and refuses those that change in place what was there before: the
    second run would read what the first has left. Counters of batches are read by nobody."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func._schema.is_mutable and "batch_norm" not in func._schema.name:
            for argument, value in zip(func._schema.arguments, args):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    for tensor in _tensors(value):
                        if id(tensor) not in self.made and tensor.dtype.is_floating_point:
                            raise ApplyError(
                                f"The unit {self.unit.text} updates a buffer of shape {tuple(tensor.shape)} in place whenever it runs, "
                                "and is compiled; backward runs it a second time. Expected a unit without such a buffer "
                                "(BatchNorm's are known).")
        out = super().__torch_dispatch__(func, types, args, kwargs)
        is_view = any(one.alias_info is not None for one in func._schema.returns)
        if not is_view or all(id(t) in self.made for t in _tensors(args)):
            self.made.update((id(t), t) for t in _tensors(out))
        return out


class _SecondRun:
    """Around the second run of a unit. BatchNorm has counted this batch already: its counter is hidden, and its averages take
    nothing of it (they are saved for backward, so that the operator must have them). What else the modules hold is what it
    was before the first run, and behind this one what it is now. Entered anew for every backward through a retained graph."""

    def __init__(self, unit, selective, call):
        self.unit, self.selective, self.call = unit, selective, call

    def __enter__(self):
        modules = self.unit.named_modules()
        self.held = _held(modules)
        if self.call is not None:
            self.call.begin_again()
            self.call.generators.begin_again()
        self.unit.reruns += 1
        self._silence(_norms(modules))
        self.selective.__enter__()

    @staticmethod
    def _silence(norms):
        for norm in norms:
            norm.momentum, norm.num_batches_tracked = 0.0, None

    def __exit__(self, *error):
        self.selective.__exit__(*error)
        name = self.held.changed_in_place()
        if name is None and self.call is None:
            silenced = {id(norm._buffers) for norm in _norms(self.unit.named_modules())}
            name = next((name for name, owner, _, value in self.held.assigned_anew()
                         if isinstance(value, torch.Tensor) and id(owner) not in silenced), None)
        self.held.put_back()
        if self.call is not None:
            self.call.generators.end_again()
        if name is not None:
            raise ApplyError(f"The unit {self.unit.text} updates its buffer {name} whenever it runs, and backward runs it "
                             "a second time; expected a unit without such a buffer (BatchNorm's are known).")


def _norms(modules):
    """Those whose averages each run would update."""
    return [m for _, m in modules if isinstance(m, _BatchNorm) and m.training and m.track_running_stats]


def _held(modules, inside=False):
    return Held(modules, {id(b) for norm in _norms(modules) for b in norm._buffers.values()}, inside)


def in_place_of(original, function):
    """`function` with the name and signature of what it replaces."""
    @functools.wraps(original)
    def forward(*inputs, **named):
        return function(*inputs, **named)

    return forward


class _Inferred:
    """A tensor made in inference mode, which autograd does not take."""

    def __init__(self, tensor):
        self.tensor = tensor


def _argument(value):
    if isinstance(value, torch.Tensor):
        return _Inferred(value) if value.is_inference() else value
    return _copied(value)


def _copied(value):
    """The containers anew, with the same in them."""
    return tree_map(lambda one: one, value)


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
                found.setdefault(owner, []).append((id(one), 0 if one.is_inference() else one._version))
        elif isinstance(one, (list, tuple)):
            for inner in one:
                look(inner, owner, depth)
        elif isinstance(one, dict):
            for inner in one.values():
                look(inner, owner, depth)
        elif depth and hasattr(one, "__dict__") and not isinstance(one, (torch.nn.Module, type, _Inferred)) and not callable(one):
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
