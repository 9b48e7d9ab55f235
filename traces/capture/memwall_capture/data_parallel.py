"""DistributedDataParallel where there is no device: which gradients are reduced when, and in which buffers.

PyTorch's reducer is C++ and times its buckets with CUDA events. Here its rules are followed in Python instead
(torch/csrc/distributed/c10d/reducer.cpp):

- Gradients lie in buckets: one for all at first; from the second forward on as large as bucket_cap_mb (the first one
  1 MiB, unless a size was asked for), in the order in which gradients came in the first backward. The assignment itself
  is PyTorch's own function.
- As a gradient comes it is multiplied by 1 / ranks into its place in the bucket; with gradient_as_bucket_view it lies
  there already and is divided in place.
- A bucket whose gradients have all come is reduced, in order, on a stream of its own, as NCCL does.
- When backward ends the reducing is waited for, and buckets are copied back into the gradients.
- Buffers of the model are broadcast before forward, unless the forward before was under no_sync().
"""

import contextlib
import sys

import torch

from .errors import CaptureError

FIRST_BUCKET, BUCKET_MIB = 1 << 20, 25
REFUSED = ("find_unused_parameters", "mixed_precision", "device_mesh", "delay_all_reduce_named_params",
           "param_to_hook_all_reduce", "bucket_cap_mb_list", "batched_grad_copy", "lazy_bucket_allocation",
           "skip_all_reduce_unused_params")


class Bucket:
    def __init__(self, parameters, label, name_storage):
        self.parameters = parameters
        first = parameters[0]
        self.buffer = torch.zeros(sum(p.numel() for p in parameters), dtype=first.dtype, device=first.device)
        name_storage(self.buffer, label)
        self.views, at = {}, 0
        for p in parameters:
            self.views[p] = self.buffer[at:at + p.numel()].view(p.shape)
            at += p.numel()
        self.pending = set(parameters)


class Reducer:
    """`name_storage(tensor, label)` is told of the buckets."""

    def __init__(self, parameters, group, bucket_mib, as_view, name_storage):
        self.parameters, self.group, self.as_view, self.name_storage = parameters, group, as_view, name_storage
        self.ranks = torch.distributed.get_world_size(group)
        self.limits = [FIRST_BUCKET if bucket_mib is None else int(bucket_mib * (1 << 20)),
                       int((BUCKET_MIB if bucket_mib is None else bucket_mib) * (1 << 20))]
        self.active, self.rebuilt, self.arrived, self.running, self.stream = True, False, [], False, None
        self._build(self.parameters, [sys.maxsize], [])
        for p in parameters:
            p.register_post_accumulate_grad_hook(self._came)

    def _build(self, parameters, limits, order):
        """`order`: the numbers of the parameters, which PyTorch's function then gives back; empty at first."""
        made = torch.distributed._compute_bucket_assignment_by_size(parameters, limits, [False] * len(parameters),
                                                                    order)[0]
        made = made if order else reversed(made)  # the last parameter's gradient is expected first
        self.buckets = [Bucket([self.parameters[i] for i in indices], f"bucket {number}", self.name_storage)
                        for number, indices in enumerate(made)]
        self.bucket_of = {p: bucket for bucket in self.buckets for p in bucket.parameters}

    def before_forward(self):
        if not self.rebuilt and len(self.arrived) == len(self.parameters):
            with torch.no_grad():
                self.buckets, self.bucket_of = [], {}
                index = {p: i for i, p in enumerate(self.parameters)}
                self._build(self.arrived, self.limits, [index[p] for p in self.arrived])
                if self.as_view:
                    self._views_again()
            self.rebuilt = True

    def _views_again(self):
        for bucket in self.buckets:
            for p, view in bucket.views.items():
                if p.grad is not None:
                    view.copy_(p.grad)
                    p.grad = view

    # ---- backward ----

    @torch.no_grad()
    def _came(self, p):
        if not self.active:
            return
        if not self.running:
            self.running, self.next = True, 0
            for bucket in self.buckets:
                bucket.pending = set(bucket.parameters)
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        if not self.rebuilt and len(self.arrived) < len(self.parameters):
            self.arrived.append(p)
        bucket = self.bucket_of[p]
        self._fill(p, bucket.views[p])
        bucket.pending.discard(p)
        while self.next < len(self.buckets) and not self.buckets[self.next].pending:
            self._reduce(self.buckets[self.next])
            self.next += 1

    def _fill(self, p, view):
        if not self.as_view:
            torch.mul(p.grad, 1.0 / self.ranks, out=view)
        elif p.grad.untyped_storage()._cdata == view.untyped_storage()._cdata:
            view.div_(self.ranks)
        else:
            torch.mul(p.grad, 1.0 / self.ranks, out=view)
            p.grad = view

    def _reduce(self, bucket):
        self.stream = self.stream or torch.cuda.Stream()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            torch.distributed.all_reduce(bucket.buffer, group=self.group)

    @torch.no_grad()
    def _finish(self):
        self.running = False
        late = [p for bucket in self.buckets for p in bucket.pending]
        if late:
            raise CaptureError(f"{len(late)} parameters of a DistributedDataParallel module had no gradient; "
                               "find_unused_parameters is not implemented on fake tensors.")
        torch.cuda.current_stream().wait_stream(self.stream)
        if not self.as_view:
            for bucket in self.buckets:
                for p, view in bucket.views.items():
                    p.grad.copy_(view)


def patch_all(device, patch):
    kind = torch.nn.parallel.DistributedDataParallel

    def name_storage(tensor, label):
        storage = device.storages.of(tensor)
        storage.kind, storage.label = "communication_buffer", label

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=None, init_sync=True,
                 process_group=None, bucket_cap_mb=None, gradient_as_bucket_view=False, static_graph=False, **others):
        asked = [name for name, value in others.items() if value and name in REFUSED]
        if asked:
            raise CaptureError(f"DistributedDataParallel with {', '.join(asked)} is not implemented on fake tensors.")
        torch.nn.Module.__init__(self)
        self.module, self.device_ids, self.process_group = module, device_ids, process_group
        self.broadcast_buffers = broadcast_buffers is None or broadcast_buffers
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        parameters = [p for name, p in module.named_parameters() if p.requires_grad and name not in ignored]
        if not parameters:
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameters that "
                               "require a gradient.")
        group = process_group or torch.distributed.group.WORLD
        self.reducer = Reducer(parameters, group, bucket_cap_mb, gradient_as_bucket_view, name_storage)

    def forward(self, *inputs, **kwargs):
        self.reducer.active = self.require_backward_grad_sync
        if torch.is_grad_enabled():
            self.reducer.before_forward()
        buffers = list(self.module.buffers())
        if self.broadcast_buffers and buffers and self.require_forward_param_sync:
            torch.distributed._broadcast_coalesced(self.reducer.group, buffers, 250 << 20, 0)
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = torch.is_grad_enabled() and self.require_backward_grad_sync
        return output

    @contextlib.contextmanager
    def no_sync(self):
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def refused(name):
        def method(self, *_args, **_kwargs):
            raise CaptureError(f"DistributedDataParallel.{name} is not implemented on fake tensors.")
        return method

    patch(kind, "__init__", __init__)
    patch(kind, "forward", forward)
    patch(kind, "no_sync", no_sync)
    patch(kind, "train", torch.nn.Module.train)
    for name in ("join", "register_comm_hook", "_register_builtin_comm_hook", "_register_fused_optim"):
        patch(kind, name, refused(name))
