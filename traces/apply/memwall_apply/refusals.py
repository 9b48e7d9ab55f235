"""What is refused before anything runs, each with a sentence."""

import sys

import torch

from .errors import ApplyError
from .storages import tensors_of

# Of saved-tensor hooks and checkpointing this package uses what differs between versions (whether hooks see what a
# checkpoint is given, early stop, which buffers a second run updates): the versions with which its tests were run.
KNOWN_TORCH = ("2.15",)


def require_torch(version=None):
    version = version or torch.__version__
    minor = ".".join(version.split(".")[:2])
    if minor not in KNOWN_TORCH:
        raise ApplyError(f"torch {version} is installed, with which memwall_apply was not tested: what saved-tensor hooks see "
                         f"of a checkpoint differs between versions. Expected {' or '.join(KNOWN_TORCH)}.")


def require_plain(model):
    from .applied import MARK
    if hasattr(model, MARK):
        raise ApplyError("A plan is applied to this model already; expected one. Take it out with remove() first.")
    fsdp = sys.modules.get("torch.distributed.fsdp")
    for name, module in model.named_modules():
        where = f"the module {name}" if name else "the model"
        if fsdp is not None and isinstance(module, fsdp.FSDPModule):
            raise ApplyError(f"fully_shard was called on {where} already; expected apply() before fully_shard, so that parameters "
                             "are gathered around what runs again.")
        if fsdp is not None and isinstance(module, fsdp.FullyShardedDataParallel):
            raise ApplyError(f"{where[0].upper()}{where[1:]} is a FullyShardedDataParallel; not implemented. Use "
                             "torch.distributed.fsdp.fully_shard, after apply().")
        if isinstance(module, torch.nn.parallel.DistributedDataParallel):
            raise ApplyError(f"{where[0].upper()}{where[1:]} is a DistributedDataParallel; expected apply() on the module in it, "
                             "before it is wrapped: names are the model's own.")
        if getattr(module, "gradient_checkpointing", False) is True:
            raise ApplyError(f"Checkpointing is switched on in {where} already (its attribute gradient_checkpointing); expected "
                             "it off, since the plan says what runs again.")
    if is_compiled(model):
        raise ApplyError("torch.compile was called on the model, or on a part of it, already; expected apply() before compile.")


def is_compiled(model):
    from torch._dynamo.eval_frame import OptimizedModule
    return any(isinstance(module, OptimizedModule) or getattr(module, "_compiled_call_impl", None) is not None
               for module in model.modules())


def is_compiling():
    """Is this called from what torch.compile is compiling, or has given up compiling?"""
    return torch.compiler.is_compiling() or torch._C._dynamo.eval_frame.get_eval_frame_callback() is not None


def require_model(model, plan):
    """Are the parameters those of the model that was captured? By name and bytes."""
    if plan.parameters is None:
        raise ApplyError(f"{plan.path}: the plan does not say which model it is for (realization.model); expected one as "
                         "`memwall run --plan-out` writes it for a capture of memwall_capture.")
    found = {name: tensor.untyped_storage().nbytes() for name, tensor in tensors_of(model)}
    for name, size in plan.parameters.items():
        if name not in found:
            raise ApplyError(f"{plan.path}: the plan is for a model with a parameter {name} of {size} bytes, and this one "
                             f"({type(model).__name__}) has none of that name; expected the model that was captured.")
        if found[name] != size:
            raise ApplyError(f"{plan.path}: the plan is for a model in which {name} has {size} bytes; here it has {found[name]}. "
                             "Expected the model that was captured, with the same sizes and types.")
    extra = [name for name, p in model.named_parameters()
             if name not in plan.parameters and p.requires_grad and p.numel() and plan.parameters]
    if extra:
        raise ApplyError(f"{plan.path}: this model has a parameter {extra[0]} that the captured one did not train"
                         f"{f' (and {len(extra) - 1} more)' if len(extra) > 1 else ''}; expected the model that was captured.")


def device_of(model):
    """The one on which the model is. What travels and what runs again as single operators is not followed across several."""
    devices = {p.device for p in model.parameters() if p.device.type not in ("cpu", "meta")}
    if len(devices) > 1:
        raise ApplyError(f"The model's parameters are on {len(devices)} devices ({', '.join(sorted(map(str, devices)))}); expected one "
                         "where a plan moves activations or runs single operators again. Not implemented across devices.")
    return next(iter(devices), torch.device("cpu"))


def require_work(plan):
    if not (plan.recompute or plan.lazy_ops or plan.optimizer or (plan.offload and plan.offload.moves)):
        raise ApplyError(f"{plan.path}: the plan runs nothing again and moves nothing ({plan.made_by}); the model runs as it is "
                         "without it. Expected a plan with decisions.")


def module_at(model, name, plan):
    try:
        return model.get_submodule(name)
    except AttributeError as e:
        raise ApplyError(f"{plan.path}: the plan runs the module {name} again, and this model has none of that name ({e}).") from e


def require_apart(units, plan):
    """No module in two units, none inside another's."""
    owner = {}
    for unit in units:
        for module in unit.modules:
            for inner in module.modules():
                other = owner.setdefault(inner, unit)
                if other is not unit:
                    raise ApplyError(f"{plan.path}: the units {other.text} and {unit.text} share a module; expected units that do "
                                     "not lie in each other.")


def require_no_reentrant_checkpoint(out):
    """In the graph of a forward: a reentrant checkpoint runs without a graph, and hooks see nothing of it."""
    waiting = [t.grad_fn for t in _leaves(out) if t.grad_fn is not None]
    seen = set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.name() == "CheckpointFunctionBackward":
            raise ApplyError("The model calls torch.utils.checkpoint.checkpoint with use_reentrant=True, whose tensors no hook "
                             "sees; expected no checkpoint of its own, since the plan says what runs again.")
        waiting += [other for other, _ in node.next_functions if other is not None]


def _leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for one in value for t in _leaves(one)] if isinstance(value, (list, tuple)) else []
