"""Turns what is dispatched during a step into the records of FORMAT.md.

Records are kept until the step ends, because the kind of a storage is often known only later: a result is a gradient
once autograd has put it into .grad.
"""

import contextlib

import torch

from . import collectives, operators
from .compiled_records import CompiledRecords
from .references import References
from .reruns import Reruns
from .storages import alias_of, plain_tensors

NO_KERNEL = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted",
             "set_", "resize_", "resize_as_", "_resize_output_", "record_stream", "_assert_async", "is_pinned",
             "is_same_size", "lift_fresh", "_assert_scalar", "_assert_tensor_metadata",
             "sym_constrain_range_for_size"}
# Take the shape and type of a tensor, not its content.
SHAPE_ONLY = {"ones_like", "zeros_like", "full_like", "rand_like", "randn_like", "randint_like", "new_zeros",
              "new_ones", "new_full"}
# Running statistics are updated although the schema of these does not say so.
HIDDEN_WRITES = {"native_batch_norm": (3, 4), "cudnn_batch_norm": (3, 4), "miopen_batch_norm": (3, 4)}


class OpRecord:
    __slots__ = ("type", "fields", "reads", "writes", "inputs", "outputs", "saves", "forward", "number", "sequence",
                 "mark")

    def __init__(self, kind, fields, reads=(), writes=(), inputs=(), outputs=()):
        self.type, self.fields = kind, fields
        self.reads, self.writes, self.inputs, self.outputs = reads, writes, inputs, outputs
        self.saves, self.forward, self.number, self.sequence, self.mark = [], None, None, None, None


class Recorder:
    """REQUIRES: `storages` knows what lives before the step begins."""

    def __init__(self, storages, names, name):
        self.storages, self.names = storages, names
        self.records = [OpRecord("step", {"step": name})]
        self.preexisting = [s for s in storages.live.values() if not s.dead and s.bytes]
        for storage in self.preexisting:
            storage.born = None
        self.in_optimizer = self.after_optimizer = self.in_backward = self.seen_backward = self.create_graph = False
        self.last_sequence = torch.autograd._get_sequence_nr() - 1
        self.op_of_sequence, self.saved = {}, {}
        self.reruns = Reruns(storages)
        self.compiled = CompiledRecords(self)
        self.references = References(self._unreferenced)
        self.attention, self.autocast, self.optimizer_kind = set(), set(), set()
        self.notes = []
        self.sync_values = 0
        self.mark = None  # number of the operator that is being recorded, by which the profiler names it
        self.calls = 0  # operators dispatched since the last record that runs something
        storages.on_alloc, storages.on_free = self._alloc, self._free
        self.groups = collectives.Groups()

    def stop(self):
        self.storages.on_alloc = self.storages.on_free = None
        self.references.clear()

    def note(self, sentence):
        if sentence not in self.notes:
            self.notes.append(sentence)

    # ---- lifetimes ----

    def _alloc(self, storage):
        storage.born = self.phase()
        if storage.bytes:
            self.records.append(OpRecord("alloc", {}, writes=[storage]))

    def _free(self, storage):
        if storage.bytes:
            fields = {"streams": storage.streams} if storage.streams else {}
            self.records.append(OpRecord("free", fields, writes=[storage]))

    def _unreferenced(self, storage):
        if storage.bytes and storage.place == "hbm":
            self.records.append(OpRecord("unreferenced", {}, writes=[storage]))

    @contextlib.contextmanager
    def sorted_frees(self):
        """What is freed inside, and nothing else happens there, is freed in the order of its making."""
        begin = len(self.records)
        yield
        self.records[begin:] = sorted(self.records[begin:], key=lambda record: record.writes[0].age)

    # ---- where in the step ----

    def phase(self):
        if self.in_optimizer or (self.after_optimizer and not self.names.stack):
            return "optimizer"
        if self.reruns.in_unit():
            return "recompute"
        if torch._C._current_graph_task_id() != -1:
            return "recompute" if torch.is_grad_enabled() and not self.create_graph else "backward"
        if self.in_backward:
            return "backward"
        if self.seen_backward and not torch.is_grad_enabled() and not self.names.stack:
            return "optimizer"  # clipping and the like
        return "forward"

    def module_entered(self):
        self.after_optimizer = False

    def begin_backward(self, create_graph):
        if not self.seen_backward:
            self.records.append(OpRecord("loss", {"loss": True}))
        self.seen_backward = self.in_backward = True
        self.after_optimizer = False
        self.create_graph = bool(create_graph)

    def _forward_of_node(self):
        node = torch._C._current_autograd_node()
        return None if node is None else self.op_of_sequence.get(node._sequence_nr())

    # ---- what is saved ----

    def pack(self, tensor):
        """A hook of torch.autograd.graph.saved_tensors_hooks that keeps the memory of what it is given, not the tensor:
        that lives as long as the program refers to it."""
        for plain in plain_tensors(tensor):
            storage = self.storages.of(plain)
            if storage.bytes:
                saved = self.saved.setdefault(torch.autograd._get_sequence_nr() - 1, {})
                saved.setdefault(storage, len(self.records))
        return tensor if tensor.is_leaf and tensor.requires_grad else alias_of(tensor)

    # ---- operators ----

    def operator(self, func, args, kwargs, out):
        """After `func` has run: what it read, wrote and made."""
        name = func._schema.name
        short = operators.base_name(func)
        self.calls += operators.dispatched(func, args)
        if func.namespace in ("c10d", "_c10d_functional", "_c10d_functional_autograd"):
            self._collective(func, args, kwargs, out)
            return
        inputs, outputs = plain_tensors([args, kwargs]), plain_tensors(out)
        before = {t.untyped_storage()._cdata for t in inputs}
        watches = torch._C._current_graph_task_id() == -1
        for t in outputs:
            storage = self.storages.of(t, name)
            if watches and storage.born is not None:
                self.references.watch(t, storage)
        written = self._written(func, short, args, kwargs)
        if func.namespace == "fsdp" and short == "split_with_sizes_copy":
            for t in written:
                self._unsharded(self.storages.of(t))
        fresh = [t for t in outputs if t.untyped_storage()._cdata not in before]
        if short in NO_KERNEL or not (written or fresh):
            return
        writes = written + fresh
        if not any(t.numel() for t in writes):
            return  # nothing is launched for no elements
        overwritten = self._overwritten(func, short, args, kwargs)
        reads = [] if short in SHAPE_ONLY else [t for t in inputs if id(t) not in overwritten]
        if short in ("_to_copy", "copy_") and self._copies(func, short, args, kwargs, reads, writes):
            return
        if not any(self.storages.on_device(t) for t in writes):
            record = self._record("op", name, self.phase(), [], writes)
            record.fields["kernels"] = 0
            return
        self._compute(func, name, args, kwargs, out, inputs, outputs, reads, writes)

    @staticmethod
    def _unsharded(storage):
        storage.kind, storage.label = "parameter", "unsharded"

    @staticmethod
    def _written(func, short, args, kwargs):
        hidden = HIDDEN_WRITES.get(short)
        if hidden:
            return [args[i] for i in hidden if isinstance(args[i], torch.Tensor) and args[5]]
        if short == "all_gather_copy_in":
            return plain_tensors(args[1])  # of FSDP: gathers the shards in a slice of the output
        if not func._schema.is_mutable:
            return []
        found = []
        for i, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = args[i] if i < len(args) else kwargs.get(argument.name)
                found += plain_tensors(value)
        return found

    @staticmethod
    def _overwritten(func, short, args, kwargs):
        """Ids of arguments whose former content does not matter: all of their storage is written anew."""
        if short in operators.OVERWRITE:
            candidates = plain_tensors(args[0])
        elif func._schema.is_mutable:
            candidates = plain_tensors([kwargs.get(a.name) for a in func._schema.arguments if a.is_out])
        else:
            return ()
        return {id(t) for t in candidates if operators.touched_bytes(t) >= t.untyped_storage().nbytes()}

    def _compute(self, func, name, args, kwargs, out, inputs, outputs, reads, writes):
        on_device = [t for t in reads if self.storages.on_device(t)]
        phase = self.phase()
        kind = operators.operator_class(func, phase)
        record = self._record("op", name, phase, on_device, writes)
        fields = record.fields
        self._link(record, phase, name, inputs, kind)
        fields["flops"] = operators.flops(func, args, kwargs, out, kind, on_device, writes)
        fields["bytes"] = operators.moved_bytes(func, on_device, writes)
        fields["class"] = kind
        fields["dtype"] = operators.arithmetic_dtype(kind, on_device, writes)
        if operators.is_random(func, args, kwargs):
            fields["random"] = True
        fields.update(operators.details(func, args, kwargs, kind))
        if kind == "attention":
            self.attention.update(word for word in ("flash", "efficient") if word in name)
        kernels = operators.kernel_count(func, args, writes)
        if kernels != 1:
            fields["kernels"] = kernels
        if self.in_optimizer:
            short = operators.base_name(func)
            self.optimizer_kind.add("fused" if short.startswith("_fused_") else
                                    "foreach" if short.startswith("_foreach_") else "other")
        record.inputs = [self._tensor(t) for t in inputs if self.storages.on_device(t)]
        seen = []
        for t in outputs:
            if self.storages.on_device(t) and not any(t is s for s in seen):
                seen.append(t)
        record.outputs = [self._tensor(t) for t in seen]
        if operators.base_name(func) in ("nonzero", "masked_select", "_unique2", "unique_dim"):
            self.records.append(OpRecord("synchronize", {"synchronize": "own_op"}))

    def _record(self, kind, name, phase, reads, writes):
        fields = {"op": name} if kind == "op" else {}
        record = OpRecord(kind, fields, self._storages(reads), self._storages(writes))
        path = self.names.path
        fields["module"] = path
        fields["phase"] = phase
        stream = self.storages.stream()
        if stream:
            fields["stream"] = stream
        if self.calls != 1:
            fields["calls"] = self.calls
        self.calls = 0
        record.mark = self.mark
        self.records.append(record)
        return record

    def _storages(self, tensors):
        found = []
        for t in tensors:
            storage = self.storages.of(t)
            if storage.bytes and storage not in found:
                found.append(storage)
        return found

    def _tensor(self, t):
        # A transposed matrix of one row counts as contiguous.
        lies_as_shape = t.is_contiguous() and not (t.dim() == 2 and t.shape[1] == 1 and t.stride(0) < t.stride(1))
        return (list(t.shape), operators.dtype_name(t.dtype), self.storages.of(t),
                None if lies_as_shape else list(t.stride()))

    def _link(self, record, phase, name, inputs, kind):
        """The op of the forward pass that this one belongs to, and its module where no module is running."""
        if self.compiled.link(record, phase):
            self.reruns.backward(record)
            return
        if phase == "backward":
            self.names.stack.clear()
            if not (self.reruns.unpacking and self._repeats(record, name, inputs, kind == "memory")):
                self._belongs(record)
                self.reruns.backward(record)
            return
        if phase == "optimizer":
            return
        sequence = torch.autograd._get_sequence_nr() - 1
        if sequence > self.last_sequence:
            self.last_sequence = sequence
            self.op_of_sequence[sequence] = record
            record.sequence = sequence
        if phase == "forward":
            self.reruns.forward(record, name, inputs)
        elif not self._repeats(record, name, inputs, kind == "memory") and not record.fields["module"]:
            waiting = self._forward_of_node()
            record.fields["module"] = waiting.fields["module"] if waiting is not None else ""

    def _belongs(self, record):
        record.forward = self._forward_of_node()
        if record.forward is not None:
            record.fields["module"] = record.forward.fields["module"]

    def _repeats(self, record, name, inputs, moves):
        """Links a repeated operator with the one that it repeats, if there is one."""
        fields = record.fields
        asking = self._forward_of_node()
        module = fields["module"] or (asking.fields["module"] if asking is not None else "")
        record.forward = self.reruns.repeat(record, name, inputs, module, asking, moves)
        if record.forward is None:
            return False
        fields["module"], fields["phase"] = record.forward.fields["module"], "recompute"
        for storage in record.writes:
            if storage.born == "backward":
                storage.born = "recompute"
        return True

    # ---- copies, waits ----

    def _copies(self, func, short, args, kwargs, reads, writes):
        """Records a copy between host and device; False if this is none."""
        source, target = (reads[-1] if reads else None), writes[0]
        if short == "copy_":
            source = args[1]
        if source is None or source.device.type == target.device.type:
            return False
        if self.storages.on_device(source) == self.storages.on_device(target):
            return False
        flag = kwargs.get("non_blocking", args[2] if short == "copy_" and len(args) > 2 else False)
        self.copy(source, target, not flag, func._schema.name)
        return True

    def copy(self, source, target, blocking, name):
        phase = self.phase()
        if phase == "recompute" and self.reruns.unpacking and not self.reruns.in_unit():
            phase = "backward"  # a tensor that is fetched is not computed again
        record = self._record("copy", name, phase, [source], [target] if target is not None else [])
        fields = {"copy": operators.touched_bytes(source), "from": self.storages.of(source).place,
                  "to": self.storages.of(target).place if target is not None else "host", "name": name,
                  "blocking": bool(blocking)}
        record.fields = {**fields, **record.fields}
        if phase == "backward":
            record.forward = self._forward_of_node()
        elif phase == "recompute":
            self._repeats(record, name, [source], True)
        elif phase == "forward":
            self.reruns.forward(record, name, [source])
        if target is not None:
            self.reruns.copied(source, target)
        return record

    def item(self, tensor):
        """`.item()`: a copy of one element, and the host waits."""
        self.calls += 1
        if self.storages.on_device(tensor):
            record = self.copy(tensor, None, True, "aten::_local_scalar_dense")
            if self.seen_backward and not (self.in_backward or self.names.stack):
                record.fields["phase"] = "optimizer"  # a loss scaler that looks for infinities, a log
            self.sync_values += 1

    def synchronize(self, what, **keys):
        self.records.append(OpRecord("synchronize", {"synchronize": what, **keys}))

    def event(self, call, number, stream):
        self.records.append(OpRecord("event", {"event": call, "number": number, "stream": stream}))

    # ---- collectives ----

    def _collective(self, func, args, kwargs, out):
        kind, reads, writes, size, group = self.groups.describe(func, args, kwargs, out)
        for t in plain_tensors(out):
            self.storages.of(t, func._schema.name)
        if kind is None:
            return
        record = self._record("collective", func._schema.name, self.phase(), reads, writes)
        record.fields = {"collective": kind, "bytes": size, "ranks": group[1], "group": group[0],
                         "name": func._schema.name, **record.fields}
        for storage in record.writes:
            if storage.born in ("forward", "backward") and storage.kind is None:
                storage.kind = "communication_buffer"
