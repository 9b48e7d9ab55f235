"""Single operators that are run again when backward first asks for what they made.

A dispatch mode sees the operators of forward below autograd. One that the plan names is written down with references to
what it read; what it made is given up. When autograd asks for any of it, the operators of its group run again, in the
order of forward, with the random numbers that they drew.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from .errors import ApplyError
from .storages import counter_of, plain_tensors, without_graph


# What is made in the likeness of a tensor needs nothing of its content, which may be gone.
SHAPES_ALONE = {f"aten::{name}_like" for name in ("empty", "zeros", "ones", "full", "rand", "randn")}


class Recipes:
    """Which operators the plan names, and in which module the program is."""

    def __init__(self, model, groups):
        self.model, self.groups = model, groups
        self.named = {}  # (module, operator): [(calls or None for all, number of the group, results that stay)]
        for i, group in enumerate(groups):
            for module, op, calls, keeps in group.ops:
                self.named.setdefault((module, op), []).append((calls, i, keeps))
        self.stack = []
        self.handles = []
        for name, module in model.named_modules():
            self.handles.append(module.register_forward_pre_hook(self._entering(name), prepend=True))
            self.handles.append(module.register_forward_hook(self._leave, always_call=True))
        self.counts = {"runs": 0, "ops": 0}
        self.calls = {}  # (module, operator): how often it has run in this forward, of those that are named

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
        self.calls = {}
        return _Watch(self, saved_pass)

    def require_all(self, plan):
        """Behind each forward: did every operator that the plan names run?"""
        for module, op, calls, _ in (one for group in self.groups for one in group.ops):
            ran = self.calls.get((module, op), 0)
            if ran == 0 or (calls and max(calls) >= ran):
                found = "no such operator ran" if ran == 0 else f"it ran {ran} times"
                wanted = f" (call {max(calls)}, counted from 0)" if ran else ""
                raise ApplyError(f"{plan.path}: the plan runs {op} of {module or 'the model'} again{wanted}, and {found} there in "
                                 "forward; expected the program that was captured, with the same settings (autocast, "
                                 "attention), in every forward.")


class _Reference:
    """What an operator read: in a storage that this pass knows, or (`storage` None) a tensor that stays: of the model, an
    input, of the host."""

    def __init__(self, func, storage, tensor):
        self.func, self.storage, self.dtype = func, storage, tensor.dtype
        self.tensor = without_graph(tensor) if storage is None else None
        self.layout = None if storage is None else (tensor.shape, tensor.stride(), tensor.storage_offset())
        self.counter = self.version = None
        if not tensor.is_inference() and (storage is None or storage.run is None):
            self.counter, self.version = self.tensor if storage is None else counter_of(tensor), tensor._version

    def require_unchanged(self):
        if self.counter is not None and self.counter._version != self.version:
            raise ApplyError(f"The plan runs {self.func._schema.name} again, and what it starts from was changed in place after it "
                             f"ran first (its version was {self.version}, is {self.counter._version}); expected it to stay as it is "
                             "until backward has ended.")


class Run:
    """The operators of one group in one forward."""

    def __init__(self, recipes, number):
        self.recipes, self.number, self.group = recipes, number, recipes.groups[number]
        # (operator, arguments, keywords, state of the random numbers or None, storages made (None: it has stayed), those
        # gone before it)
        self.steps = []
        self.alive = []  # made so far, and not gone
        self.inputs = []
        self.done = self.running = False

    def again(self, saved_pass):
        names = " + ".join(op for _, op, *_ in self.group.ops)
        if self.running:
            raise ApplyError(f"The plan runs {names} again, and one of them reads what a later one makes; expected the order of "
                             "forward.")
        if self.done:
            raise ApplyError(f"Backward went a second time through a graph (retain_graph=True) in which the plan runs {names} "
                             "again; what they start from is gone. Not implemented with operators that are run again.")
        self.done = self.running = True
        made, ends = [], self._ends()
        device = saved_pass.hook.device
        for storage in list(self.inputs):  # what other groups make comes first
            saved_pass.rerun_asks(storage)
            saved_pass.bring_back(storage)
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            for i, (func, args, kwargs, state, storages, gone) in enumerate(self.steps):
                for storage in gone:  # as in forward
                    saved_pass.drop_if_over(storage)
                args, kwargs = tree_map_only(_Reference, lambda r: self._resolve(r, saved_pass), (args, kwargs))
                out = _with_random_state(device, state, func, args, kwargs)
                for storage, tensor in zip(storages, plain_tensors(out)):
                    if storage is None:  # it stays from the first time
                        continue
                    storage.device = storage.whole(tensor)
                    made.append(storage)
                out = args = kwargs = tensor = None
                for storage in ends.get(i, ()):
                    storage.needed_by -= self.inputs.count(storage)
                    saved_pass.drop_if_over(storage)
        self.running = False
        self.recipes.counts["runs"] += 1
        self.recipes.counts["ops"] += len(self.steps)
        self.steps, self.alive, self.inputs = [], [], []
        for storage in made:
            saved_pass.drop_if_over(storage)

    def _ends(self):
        """{number of a step: inputs that no later one reads}. What another group has made stays to the end."""
        last = {}
        for i, (_, args, kwargs, *_) in enumerate(self.steps):
            for reference in (one for one in tree_leaves((args, kwargs)) if isinstance(one, _Reference)):
                if reference.storage is not None and reference.storage.run is not self:
                    last[reference.storage] = i
        ends = {}
        for storage, i in last.items():
            ends.setdefault(i if storage.run is None else len(self.steps) - 1, []).append(storage)
        return ends

    def forget(self):
        self.steps, self.alive, self.inputs = [], [], []

    @staticmethod
    def _resolve(reference, saved_pass):
        reference.require_unchanged()
        if reference.storage is None:
            return reference.tensor
        saved_pass.bring_back(reference.storage)
        return reference.storage.view(reference.dtype, reference.layout)


class _Watch(TorchDispatchMode):
    """Over one forward of the model."""

    def __init__(self, recipes, saved_pass):
        super().__init__()
        self.recipes, self.pass_ = recipes, saved_pass
        self.calls = recipes.calls
        self.runs = saved_pass.runs

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        stack = self.recipes.stack
        key = (stack[-1] if stack else "", func._schema.name)
        named = self.recipes.named.get(key)
        if named is None:
            return func(*args, **kwargs)
        call = self.calls.get(key, 0)
        group, keeps = next(((group, keeps) for calls, group, keeps in named if calls is None or call in calls), (None, ()))
        random = group is not None and torch.Tag.nondeterministic_seeded in func.tags
        state = _random_state(self.pass_.hook.device) if random else None
        read = [t.untyped_storage()._cdata for t in plain_tensors([args, kwargs])]
        out = func(*args, **kwargs)
        made = list(plain_tensors(out))
        if func._schema.is_mutable or any(t.numel() and t.untyped_storage()._cdata not in read for t in made):
            self.calls[key] = call + 1  # a view launches nothing, and is not counted
            if group is not None:
                fresh = [t for t in made if t.untyped_storage()._cdata not in read]
                self._write_down(group, func, args, kwargs, state, made, _numbered(fresh, keeps))
        return out

    def _write_down(self, group, func, args, kwargs, state, made, kept):
        run = self.runs.get(group)
        if run is None:
            run = self.runs[group] = Run(self.recipes, group)
        changed = self._changed(run, func, args, kwargs)
        if func._schema.name in SHAPES_ALONE and args and isinstance(args[0], torch.Tensor):
            like = args[0]
            args = (torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="meta"), *args[1:])
            kwargs = {"device": like.device, **{name: value for name, value in kwargs.items() if value is not None}}
        arguments = tree_map_only(torch.Tensor, lambda t: self._reference(run, func, t), (args, kwargs))
        gone = [storage for storage in run.alive if storage.expired]
        storages = [None if t.untyped_storage()._cdata in kept else
                    self._made(run, func, t, t._version + (t.untyped_storage()._cdata in changed)) for t in made]
        run.alive = [storage for storage in run.alive if storage not in gone]
        run.alive += [storage for storage in storages if storage is not None and storage not in run.alive]
        run.steps.append((func, *arguments, state, storages, gone))

    def _changed(self, run, func, args, kwargs):
        """Storages that the operator changes in place. What a run of the group has not made itself would be changed
        twice."""
        changed, training = set(), True
        given = {argument.name: (argument, value) for argument, value in zip(func._schema.arguments, args)}
        given.update((a.name, (a, kwargs[a.name])) for a in func._schema.arguments if a.name in kwargs)
        for name in ("training", "train", "use_input_stats"):
            training = training and (name not in given or bool(given[name][1]))
        for argument, value in given.values():
            if isinstance(value, torch.Generator):
                raise ApplyError(f"The plan runs {func._schema.name} again, which draws from a generator that it is given; expected "
                                 "PyTorch's own, whose numbers are drawn again. Not implemented with others.")
            if argument.name in ("running_mean", "running_var") and training and value is not None:
                raise ApplyError(f"The plan runs {func._schema.name} again, which updates {argument.name} whenever it runs; expected "
                                 "its module (BatchNorm) to be run again as a unit, which leaves it as it is.")
            if argument.alias_info is not None and argument.alias_info.is_write:
                for tensor in plain_tensors([value]):
                    storage = self.pass_.find(tensor)
                    if storage is None or storage.run is not run:
                        raise ApplyError(f"The plan runs {func._schema.name} again, which changes in place what was there before; a "
                                         "second run would change it twice. Expected operators that make new tensors.")
                    changed.add(tensor.untyped_storage()._cdata)
        return changed

    def _reference(self, run, func, tensor):
        storage = self.pass_.find(tensor)
        if storage is not None and storage.counter is not None:
            storage.require_content(tensor, f"{func._schema.name}, which the plan runs again, reads")
        if storage is None:
            return _Reference(func, None, tensor)
        if storage.run is not run:
            storage.needed_by += 1
            run.inputs.append(storage)
            if storage.run is None and storage.host is None and storage.device is None:
                storage.device = storage.whole(tensor)
        return _Reference(func, storage, tensor)

    def _made(self, run, func, tensor, version):
        storage = self.pass_.find(tensor)
        if storage is None or storage.run not in (None, run) or (storage.run is None and storage.saved):
            raise ApplyError(f"The plan runs {func._schema.name} again, which changes in place what was there before; a second "
                             "run would change it twice. Expected operators that make new tensors.")
        if storage.run is None and storage.needed_by:
            raise ApplyError(f"The plan runs {func._schema.name} again, which changes in place what it reads; expected operators "
                             "that make new tensors.")
        storage.run = run
        storage.content_is_of(tensor, version)
        return storage


def _numbered(tensors, numbers):
    """Addresses of those of their storages that have these numbers, counted from 0 in the order of the tensors."""
    if not numbers:
        return ()
    storages = list(dict.fromkeys(t.untyped_storage()._cdata for t in tensors if t.untyped_storage().nbytes()))
    if max(numbers) >= len(storages):
        raise ApplyError(f"The plan keeps result {max(numbers)} of an operator that it runs again, counted from 0, which makes "
                         f"{len(storages)}; expected the program that was captured.")
    return {storages[number] for number in numbers}


def _random_state(device):
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_random_state(device, state):
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
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
