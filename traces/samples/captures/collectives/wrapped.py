"""Networks under a framework as a case says, on the CPU; fsdp1 also on fake tensors."""

import contextlib
import functools
import os
import re
import sys
import types

import torch
from cases import BLOCKS
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.checkpoint import checkpoint


class Training:
    """One rank's training; each method is one of its step's parts."""

    def __init__(self, module, optimizer=None):
        self.module, self.optimizer = module, optimizer or torch.optim.AdamW(module.parameters(), lr=1e-4)

    def leave_out(self, _parts):
        """Of the passes that follow; none where it is empty. Returns a context for them."""
        return contextlib.nullcontext()

    def forward(self, batch):
        return self.module(*batch)

    def backward(self, loss):
        loss.backward()

    def end_pass(self):
        pass

    def update(self, clip):
        if clip:
            self.clip()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def clip(self):
        torch.nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)


class DataParallel(Training):
    def __init__(self, module, settings):
        super().__init__(torch.nn.parallel.DistributedDataParallel(module, **settings))

    def leave_out(self, parts):
        return self.module.no_sync() if parts else contextlib.nullcontext()


class FullyShard(Training):
    def __init__(self, module, settings, units):
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        world, replicas = torch.distributed.get_world_size(), settings.get("replicas", 1)
        mesh = (init_device_mesh("cpu", (world,)) if replicas == 1 else
                init_device_mesh("cpu", (replicas, world // replicas), mesh_dim_names=("replicate", "shard")))
        types_of = {key: getattr(torch, settings[key]) for key in ("param_dtype", "reduce_dtype") if key in settings}
        options = {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(**types_of)}
        if "reshard_after_forward" in settings:
            options["reshard_after_forward"] = settings["reshard_after_forward"]
        keep = matching(module, settings.get("keep", ()))
        for unit in units:
            fully_shard(unit, **options | ({"reshard_after_forward": False} if unit in keep else {}))
        fully_shard(module, **options)
        for number, unit in enumerate(units):
            if "forward_ahead" in settings:
                unit.set_modules_to_forward_prefetch(units[number + 1:number + 1 + settings["forward_ahead"]])
            if "backward_ahead" in settings:
                unit.set_modules_to_backward_prefetch(units[:number][::-1][:settings["backward_ahead"]])
        if "forward_ahead" in settings:
            module.set_modules_to_forward_prefetch(units[:settings["forward_ahead"]])
        if "backward_ahead" in settings:
            module.set_modules_to_backward_prefetch(units[::-1][:settings["backward_ahead"]])
        super().__init__(module)

    def leave_out(self, parts):
        self.module.set_requires_gradient_sync("gradients" not in parts)
        self.module.set_requires_all_reduce("all_reduce" not in parts)
        self.module.set_reshard_after_backward("parameters" not in parts)
        return contextlib.nullcontext()


class FlatParameters(Training):
    def __init__(self, module, settings, units, device):
        from torch.distributed import fsdp
        types_of = {key: getattr(torch, settings[key]) for key in ("param_dtype", "reduce_dtype") if key in settings}
        options = {"device_id": torch.device(device, 0) if device != "cpu" else torch.device(device), "use_orig_params": settings.get("use_orig_params", False),
                   "sharding_strategy": fsdp.ShardingStrategy[settings.get("strategy", "FULL_SHARD")],
                   "forward_prefetch": settings.get("forward_prefetch", False),
                   "mixed_precision": fsdp.MixedPrecision(**types_of) if types_of else None}
        prefetch = settings.get("backward_prefetch", "BACKWARD_PRE")
        options["backward_prefetch"] = fsdp.BackwardPrefetch[prefetch] if prefetch else None
        if "replicas" in settings:
            world = torch.distributed.get_world_size()
            options["device_mesh"] = init_device_mesh(
                device, (settings["replicas"], world // settings["replicas"]), mesh_dim_names=("replicate", "shard"))
        names = {unit: name for name, unit in module.named_modules()}
        for unit in units:
            outer, _, name = names[unit].rpartition(".")
            setattr(module.get_submodule(outer), name, fsdp.FullyShardedDataParallel(unit, **options))
        super().__init__(fsdp.FullyShardedDataParallel(module, **options))

    def leave_out(self, parts):
        return self.module.no_sync() if parts else contextlib.nullcontext()

    def clip(self):
        self.module.clip_grad_norm_(1.0)


class DeepSpeed(Training):
    def __init__(self, module, settings, passes, batch):
        import deepspeed
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
        configuration = {"train_micro_batch_size_per_gpu": batch, "gradient_accumulation_steps": passes,
                         "zero_optimization": settings, "bf16": {"enabled": True},
                         "zero_allow_untested_optimizer": True}
        engine, *_ = deepspeed.initialize(model=module, optimizer=optimizer, config=configuration)
        super().__init__(engine, optimizer)

    def backward(self, loss):
        self.module.backward(loss)

    def end_pass(self):
        self.module.step()  # updates at the end of the last pass

    def update(self, clip):
        pass


def start_deepspeed(rank, ranks):
    """Before torch.distributed is. Nothing of it is compiled: its shared-memory operator serves inference alone."""
    os.environ.update(DS_ACCELERATOR="cpu", LOCAL_RANK=str(rank), LOCAL_SIZE=str(ranks))
    import deepspeed
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
    deepspeed.init_distributed("gloo", verbose=False)


def matching(module, patterns):
    """As memwall's units=: '*' is no dot."""
    expressions = [re.compile(re.escape(pattern).replace(r"\*", r"[^.]+") + "$") for pattern in patterns]
    return [m for name, m in module.named_modules() if any(e.match(name) for e in expressions)]


def run_again(module):
    """Inside of whatever wraps the module later."""
    kept = module.forward
    module.forward = types.MethodType(
        lambda _self, *inputs: checkpoint(functools.partial(kept), *inputs, use_reentrant=False), module)


def wrap(case, module, batch, device="cpu"):
    """`device`: of the module; fsdp1 alone takes another than the host."""
    blocks = matching(module, (BLOCKS[case.network] + ".*",))
    if case.checkpoint:
        for block in blocks:
            run_again(block)
    settings = dict(case.settings)
    chosen = settings.pop("units", None)
    # Inner units before the units around them, as fully_shard demands; blocks in their order.
    units = matching(module, chosen) if chosen else blocks
    inner_first = [m for m in module.modules() if m in set(units)]
    inner_first.sort(key=lambda m: sum(m in set(other.modules()) for other in units), reverse=True)
    if case.framework == "ddp":
        return DataParallel(module, settings)
    if case.framework == "fsdp2":
        return FullyShard(module, settings, inner_first)
    if case.framework == "fsdp1":
        return FlatParameters(module, settings, inner_first, device)
    return DeepSpeed(module, settings, case.passes, len(batch[0]))
