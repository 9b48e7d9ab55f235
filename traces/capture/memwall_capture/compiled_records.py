"""Records of compiled code: kernels of Inductor, and which operator of forward each belongs to."""

import torch

from . import operators


class CompiledRecords:
    """REQUIRES: `recorder` records one step. Of each run of a compiled program it keeps which record made which operators
    of forward, under the number of its node in autograd's graph."""

    def __init__(self, recorder):
        self.r = recorder
        self.launch = None  # the one that comes next: of a kernel, or of an operator of a library
        self.root = None
        self.made_by, self.in_module, self.root_of = {}, {}, {}

    def next(self, launch, root):
        self.launch, self.root = launch, root

    def kernel(self, kernel, read, written):
        """A launch of `kernel`. `read`, `written`: (position among its arguments, tensor)."""
        r, launch = self.r, self.launch
        reads, writes = [t for _, t in read], [t for _, t in written]
        phase = r.phase()
        record = r._record("op", "triton::" + kernel.name.removeprefix("triton_"), phase, reads, writes)
        record.fields["calls"] = 0
        record.fields["compiled"] = True
        r._link(record, phase, record.fields["op"], reads, kernel.operator_class(launch) == "memory")
        fields = record.fields
        fields["flops"] = launch.flops if launch is not None else 0
        fields["bytes"] = sum(operators.touched_bytes(t) if launch is None else launch.bytes_of(i, t)
                              for i, t in (*read, *written))
        fields["class"] = kernel.operator_class(launch)
        fields["dtype"] = operators.arithmetic_dtype("elementwise", reads, writes)
        if launch is not None and launch.random:
            fields["random"] = True
        record.inputs = [r._tensor(t) for t in reads]
        record.outputs = [r._tensor(t) for t in writes]
        if r.in_optimizer:
            r.optimizer_kind.add("other")

    # ---- where it belongs ----

    def link(self, record, phase):
        """Module and forward operator of what a compiled program runs; False where none is running, or nothing is
        known of the operator."""
        launch, self.launch = self.launch, None
        if launch is None or phase == "optimizer":
            return False
        record.fields["compiled"] = True  # operators of libraries, too: the program calls them, and no framework does
        record.fields["calls"] = 0
        node = torch._C._current_autograd_node() if phase == "backward" else None
        run = node._sequence_nr() if node is not None else torch.autograd._get_sequence_nr() - 1
        if phase == "backward":
            record.fields["module"] = launch.module(self.r.names, self.root_of.get(run))
            self._belongs(record, launch, run)
            return True
        record.fields["module"] = launch.module(self.r.names, self.root)
        self.root_of.setdefault(run, self.root)
        self.in_module[run, record.fields["module"]] = record
        for number in launch.forward_numbers:
            self.made_by.setdefault((run, number), record)
        return False

    def _belongs(self, record, launch, run):
        found = [self.made_by[run, number] for number in launch.numbers() if (run, number) in self.made_by]
        # What Inductor has put in an operator's place has no number: then the last of the same module.
        record.forward = found[0] if found else self.in_module.get(
            (run, record.fields["module"]), self.r.op_of_sequence.get(run))
        if found and not launch.is_backward:  # what the partitioner computes again instead of keeping it
            record.fields["phase"] = "recompute"
            for storage in record.writes:
                if storage.born == "backward":
                    storage.born = "recompute"
