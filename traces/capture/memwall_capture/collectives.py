"""Which collective an operator of torch.distributed is, over which buffers and among which ranks."""

import torch

from .storages import plain_tensors

KINDS = (("allreduce", "all_reduce"), ("all_reduce", "all_reduce"), ("reduce_scatter", "reduce_scatter"),
         ("allgather", "all_gather"), ("all_gather", "all_gather"), ("broadcast", "broadcast"),
         ("alltoall", "all_to_all"), ("all_to_all", "all_to_all"), ("reduce_", "reduce"), ("send", "send_receive"),
         ("recv", "send_receive"), ("barrier", "barrier"))


def kind_of(name):
    for part, kind in KINDS:
        if part in name:
            return kind
    return None


class Groups:
    """Names of process groups, in the order in which they appear."""

    def __init__(self):
        self.names = {}

    def _group(self, func, args, kwargs):
        from torch.distributed import ProcessGroup
        named = None
        for value in (*args, *kwargs.values()):
            if isinstance(value, torch.ScriptObject):
                try:
                    named = ProcessGroup.unbox(value)
                except (RuntimeError, TypeError, AttributeError):
                    continue
        if named is None and func.namespace != "c10d":
            from torch.distributed.distributed_c10d import _resolve_process_group
            for value in reversed(args):
                if isinstance(value, str) and value not in ("sum", "avg", "max", "min", "product"):
                    named = _resolve_process_group(value)
                    break
        ranks = named.size() if named is not None else 1
        name = named.group_name if named is not None else "unknown"
        return self.names.setdefault(name, f"group{len(self.names)}"), ranks

    def describe(self, func, args, kwargs, out):
        """(kind, tensors read, tensors written, bytes, (group, ranks)); kind None: nothing is sent."""
        name = func._schema.name.split("::")[-1]
        kind = None if name.startswith("wait_tensor") else kind_of(name)
        if kind is None:
            return None, [], [], 0, ("", 1)
        inputs, outputs = plain_tensors([args, kwargs]), plain_tensors(out)
        if func.namespace != "c10d" and not func._schema.is_mutable:
            reads, writes = inputs, outputs
        elif kind in ("all_reduce", "broadcast", "reduce"):
            reads = writes = inputs
        elif kind == "send_receive":
            reads, writes = (inputs, []) if "send" in name else ([], inputs)
        else:  # c10d: (outputs, inputs, group, ...)
            writes, reads = plain_tensors(args[0]), plain_tensors(args[1]) if len(args) > 1 else []
        size = max(sum(t.numel() * t.element_size() for t in tensors) for tensors in (reads, writes))
        return kind, reads, writes, size, self._group(func, args, kwargs)
