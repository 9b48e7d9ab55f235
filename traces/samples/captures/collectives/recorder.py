"""Which collectives a step calls, in the order in which the host calls them.

A TorchDispatchMode sees every operator of torch.distributed, whoever calls it: FSDP from Python, the reducer of
DistributedDataParallel from C++, DTensor, DeepSpeed. All of them reach ProcessGroup through PyTorch's dispatcher
(`c10d::allreduce_`, `_c10d_functional::all_reduce`, ...).
"""

import torch
from torch.distributed import ProcessGroup, get_process_group_ranks
from torch.distributed.distributed_c10d import _resolve_process_group
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

NAMESPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "_dtensor")
KINDS = (("allreduce", "all_reduce"), ("all_reduce", "all_reduce"), ("reduce_scatter", "reduce_scatter"),
         ("allgather", "all_gather"), ("all_gather", "all_gather"), ("broadcast", "broadcast"),
         ("alltoall", "all_to_all"), ("all_to_all", "all_to_all"))
# Messages of pipelines are recorded by who issues them.
NO_COLLECTIVES = ("wait_tensor", "_wrap_tensor_autograd", "barrier", "monitored_barrier_", "send", "recv_")


def kind_of(operator):
    for part, kind in KINDS:
        if part in operator:
            return kind
    raise RuntimeError(f"Operator '{operator}' of torch.distributed is no collective that is known here; expected one "
                       f"with {', '.join(part for part, _ in KINDS)} in its name.")


def group_of(arguments):
    for value in arguments:
        if isinstance(value, torch.ScriptObject):
            try:
                return ProcessGroup.unbox(value)
            except (RuntimeError, TypeError):  # another class: the operation of a reduction
                continue
        if isinstance(value, ProcessGroup):
            return value
    for value in reversed(arguments):
        if isinstance(value, str):
            return _resolve_process_group(value)
    raise RuntimeError("A collective names no process group.")


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


class CollectiveRecorder(TorchDispatchMode):
    """`calls`: a dictionary each. Bytes are those of the whole tensor: what a gather makes, what a reduce-scatter is
    given, what an all-reduce or a broadcast changes. `phase` is set by the step."""

    def __init__(self):
        super().__init__()
        self.calls, self.phase = [], ""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(issubclass(kind, torch.distributed.tensor.DTensor) for kind in types):
            return NotImplemented  # it calls operators on its parts, which come here again
        out = func(*args, **kwargs)
        name = func.name().split("::")[-1].split(".")[0]
        if func.namespace in NAMESPACES and name not in NO_COLLECTIVES:
            given = [v for v in tree_leaves([args, kwargs], is_leaf=lambda v: isinstance(v, torch.ScriptObject))]
            tensors = [v for v in given if isinstance(v, torch.Tensor)]
            if func.namespace == "c10d" and kind_of(name) in ("all_gather", "reduce_scatter"):
                parts = [tree_leaves(args[0]), tree_leaves(args[1])]  # outputs, inputs
            else:
                parts = [tensors, tree_leaves(out) if func.namespace != "c10d" else []]
            self.calls.append({"phase": self.phase, "kind": kind_of(name),
                               "dtype": str(tensors[0].dtype).removeprefix("torch."),
                               "bytes": max(bytes_of(part) for part in parts),
                               "ranks": sorted(get_process_group_ranks(group_of(given)))})
        return out
