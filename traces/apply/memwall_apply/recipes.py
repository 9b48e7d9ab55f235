"""Single operators that are run again when backward first asks for what they made.

A dispatch mode sees the operators of forward below autograd. One that the plan names is written down with references to
what it read; what it made is given up. When autograd asks for any of it, the operators of its group run again, in the
order of forward, with the random numbers that they drew.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from .errors import ApplyError
from .storages import plain_tensors


class Recipes:
    """Which operators the plan names, and in which module the program is."""

    def __init__(self, model, groups):
        self.model, self.groups = model, groups
        self.named = {}  # (module, operator): [(calls or None for all, number of the group)]
        for i, group in enumerate(groups):
            for module, op, calls in group.ops:
                self.named.setdefault((module, op), []).append((calls, i))
        self.stack = []
        self.handles = []
        for name, module in model.named_modules():
            self.handles.append(module.register_forward_pre_hook(self._entering(name), prepend=True))
            self.handles.append(module.register_forward_hook(self._leave, always_call=True))
        self.counts = {"runs": 0, "ops": 0}
        self.seen = set()  # of what is named, in this forward

    def _entering(self, name):
        def enter(_module, _inputs):
            self.stack.append(name)
        return enter

    def _leave(self, _module, _inputs, _outputs):
        if self.stack:
            self.stack.pop()

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def watch(self, saved_pass):
        self.seen = set()
        return _Watch(self, saved_pass)

    def require_all(self, plan):
        """Behind the first forward: did every operator that the plan names run?"""
        for module, op, _ in (one for group in self.groups for one in group.ops):
            if (module, op) not in self.seen:
                raise ApplyError(f"{plan.path}: the plan runs {op} of {module or 'the model'} again, and no such operator ran there "
                                 "in forward; expected the program that was captured, with the same settings (autocast, "
                                 "attention).")


class _Reference:
    """What an operator read: in a storage that this pass knows."""

    def __init__(self, storage, tensor):
        self.storage, self.dtype = storage, tensor.dtype
        self.layout = (tensor.shape, tensor.stride(), tensor.storage_offset())


class Run:
    """The operators of one group in one forward."""

    def __init__(self, recipes, group):
        self.recipes, self.group = recipes, group
        # (operator, arguments, keywords, state of the random numbers or None, storages made, those gone before it)
        self.steps = []
        self.alive = []  # made so far, and not gone
        self.inputs = []
        self.done = False

    def again(self, saved_pass):
        if self.done:
            names = " + ".join(op for _, op, _ in self.group.ops)
            raise ApplyError(f"Backward went a second time through a graph (retain_graph=True) in which the plan runs {names} "
                             "again; what they start from is gone. Not implemented with operators that are run again.")
        self.done = True
        made = []
        device = saved_pass.hook.device_type
        with torch.no_grad(), torch.autocast(device, enabled=False):
            for func, args, kwargs, state, storages, gone in self.steps:
                for storage in gone:  # as in forward
                    saved_pass.drop_if_over(storage)
                args, kwargs = tree_map_only(_Reference, lambda r: self._resolve(r, saved_pass), (args, kwargs))
                out = _with_random_state(device, state, func, args, kwargs)
                for storage, tensor in zip(storages, plain_tensors(out)):
                    storage.device = storage.whole(tensor)
                    made.append(storage)
                del out, args, kwargs, tensor
        self.recipes.counts["runs"] += 1
        self.recipes.counts["ops"] += len(self.steps)
        for storage in self.inputs:
            storage.needed_by -= 1
        self.steps, self.alive = [], []
        for storage in made + self.inputs:
            saved_pass.drop_if_over(storage)
        self.inputs = []

    @staticmethod
    def _resolve(reference, saved_pass):
        saved_pass.bring_back(reference.storage)
        return reference.storage.view(reference.dtype, reference.layout)


class _Watch(TorchDispatchMode):
    """Over one forward of the model."""

    def __init__(self, recipes, saved_pass):
        super().__init__()
        self.recipes, self.pass_ = recipes, saved_pass
        self.calls = {}
        self.runs = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        stack = self.recipes.stack
        key = (stack[-1] if stack else "", func._schema.name)
        named = self.recipes.named.get(key)
        if named is None:
            return func(*args, **kwargs)
        call = self.calls.get(key, 0)
        group = next((group for calls, group in named if calls is None or call in calls), None)
        random = group is not None and torch.Tag.nondeterministic_seeded in func.tags
        state = _random_state(self.pass_.hook.device_type) if random else None
        read = [t.untyped_storage()._cdata for t in plain_tensors([args, kwargs])]
        out = func(*args, **kwargs)
        made = list(plain_tensors(out))
        if func._schema.is_mutable or any(t.numel() and t.untyped_storage()._cdata not in read for t in made):
            self.calls[key] = call + 1  # a view launches nothing, and is not counted
            if group is not None:
                self._write_down(group, func, args, kwargs, state, made)
        return out

    def _write_down(self, group, func, args, kwargs, state, made):
        self.recipes.seen.add((self.recipes.stack[-1] if self.recipes.stack else "", func._schema.name))
        run = self.runs.get(group)
        if run is None:
            run = self.runs[group] = Run(self.recipes, self.recipes.groups[group])
        arguments = tree_map_only(torch.Tensor, lambda t: self._reference(run, t), (args, kwargs))
        gone = [storage for storage in run.alive if storage.expired]
        storages = [self._made(run, func, t) for t in made]
        run.alive = [storage for storage in run.alive if storage not in gone]
        run.alive += [storage for storage in storages if storage not in run.alive]
        run.steps.append((func, *arguments, state, storages, gone))

    def _reference(self, run, tensor):
        storage = self.pass_.find(tensor)
        if storage is None:
            return tensor  # of the model, an input, of the host
        if storage.run is not run:
            storage.needed_by += 1
            run.inputs.append(storage)
            if storage.run is None and storage.host is None and storage.device is None:
                storage.device = storage.whole(tensor)
        return _Reference(storage, tensor)

    def _made(self, run, func, tensor):
        storage = self.pass_.find(tensor)
        if storage is None or storage.run not in (None, run) or (storage.run is None and storage.saved):
            raise ApplyError(f"The plan runs {func._schema.name} again, which changes in place what was there before; a second "
                             "run would change it twice. Expected operators that make new tensors.")
        if storage.run is None and storage.needed_by:
            raise ApplyError(f"The plan runs {func._schema.name} again, which changes in place what it reads; expected operators "
                             "that make new tensors.")
        storage.run = run
        return storage


def _random_state(device):
    return torch.cuda.get_rng_state() if device == "cuda" else torch.get_rng_state()


def _set_random_state(device, state):
    if device == "cuda":
        torch.cuda.set_rng_state(state)
    else:
        torch.set_rng_state(state)


def _with_random_state(device, state, func, args, kwargs):
    if state is None:
        return func(*args, **kwargs)
    now = _random_state(device)
    _set_random_state(device, state)
    try:
        return func(*args, **kwargs)
    finally:
        _set_random_state(device, now)
