"""Puts a plan into a model, and takes it out again."""

import torch

from . import refusals
from .errors import ApplyError
from .hook import Hook
from .optimizer import HostOptimizer
from .memory_plan import Plan, load
from .recipes import Recipes
from .storages import plain_tensors
from .units import Unit, in_place_of

MARK = "_memwall_applied"


def apply(model, plan, optimizer=None):
    """Carries out `plan` (of `load`, or a path) whenever `model` is trained. Call it before `fully_shard`,
    DistributedDataParallel and `compile`; the training loop stays as it is. `optimizer`: needed where the plan puts its
    states on the host; its `step` then works there.

    Returns an Applied. Raises ApplyError where the plan is of another model, names what is not there, or asks for
    what PyTorch cannot do; what only a run can tell is raised by the first forward."""
    plan = plan if isinstance(plan, Plan) else load(plan)
    refusals.require_torch()
    refusals.require_plain(model)
    refusals.require_model(model, plan)
    refusals.require_work(plan)
    if plan.optimizer is not None and optimizer is None:
        raise ApplyError(f"{plan.path}: the plan keeps the optimizer's states on the host; expected apply(model, plan, optimizer).")
    return Applied(model, plan, optimizer)


class Applied:
    """What carries out a plan. `counts` says what it has done so far."""

    def __init__(self, model, plan, optimizer):
        self.model, self.plan = model, plan
        travels = plan.offload is not None
        self.units = [Unit(names, [refusals.module_at(model, name, plan) for name in names], group)
                      for names, group in plan.units]
        refusals.require_apart(self.units, plan)
        self.recipes = Recipes(model, plan.lazy_ops) if plan.lazy_ops else None
        self.hook = Hook(model, plan.offload, self.recipes, refusals.device_of(model)) if travels or self.recipes else None
        self.optimizer = HostOptimizer(optimizer, plan.optimizer) if plan.optimizer is not None else None
        for unit in self.units:
            unit.install()
        self.forward = model.forward
        model.forward = in_place_of(self.forward, self._forward)
        setattr(model, MARK, self)
        self.graph_checked = False

    def __deepcopy__(self, _memo):
        raise ApplyError("A model with a plan cannot be copied: the copy would run the original's modules. Take the plan out with "
                         "remove(), copy, and apply it to both.")

    def __reduce__(self):
        raise ApplyError("A model with a plan cannot be pickled; save its state_dict(), or take the plan out with remove() first.")

    def remove(self):
        """The model runs as before. Not while an autograd graph of it is alive."""
        for unit in self.units:
            unit.remove()
        self.model.__dict__.pop("forward", None)
        self.model.__dict__.pop(MARK, None)
        if self.recipes is not None:
            self.recipes.remove()
        if self.optimizer is not None:
            self.optimizer.remove()

    def _forward(self, *inputs, **named):
        if not torch.is_grad_enabled():
            return self.forward(*inputs, **named)
        if torch.compiler.is_compiling() and self.hook is None:
            return self.forward(*inputs, **named)
        for unit in self.units:
            unit.begin_forward()
        if self.hook is None:
            out = self.forward(*inputs, **named)
        else:
            out = self._watched(inputs, named)
        for unit in self.units:
            unit.end_of_forward()
        self._check_first(out)
        return out

    def _watched(self, inputs, named):
        if refusals.is_compiled(self.model) or refusals.is_compiling():
            raise ApplyError("The model, or a part of it, is compiled, and the plan decides about single tensors that autograd saves, "
                             "which compiled code does not show one by one. Expected no torch.compile, or a plan of "
                             "checkpointed modules alone.")
        saved = self.hook.open(plain_tensors((inputs, named)))
        with torch.autograd.graph.saved_tensors_hooks(saved.pack, saved.unpack):
            if self.recipes is None:
                out = self.forward(*inputs, **named)
            else:
                with self.recipes.watch(saved):
                    out = self.forward(*inputs, **named)
        saved.end_of_forward()
        if self.recipes is not None:
            self.recipes.require_all(self.plan)
        return out

    def _check_first(self, out):
        if self.graph_checked:
            return
        self.graph_checked = True
        refusals.require_no_reentrant_checkpoint(out)
        compiled = refusals.is_compiled(self.model)  # what runs is not seen here then
        idle = [] if compiled else [unit.text for unit in self.units if not unit.runs]
        if idle:
            raise ApplyError(f"{self.plan.path}: {len(idle)} units of the plan did not run in forward ({idle[0]} first), so that "
                             "nothing of them is run again; expected each of them to be called once or more.")

    @property
    def counts(self):
        """Numbers since `apply`: units run and run again, operators run again, storages and bytes sent and back."""
        counts = {"unit_runs": sum(unit.runs for unit in self.units),
                  "unit_reruns": sum(unit.reruns for unit in self.units)}
        if self.recipes is not None:
            counts["operators_rerun"] = self.recipes.counts["ops"]
        if self.hook is not None:
            counts.update(self.hook.counts, host_bytes=self.hook.pool.bytes)
        if self.optimizer is not None:
            counts.update(self.optimizer.counts)
        return counts
