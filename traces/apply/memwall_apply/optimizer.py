"""The optimizer's update on the host, its states there: gradients go down as backward finishes them, parameters come back
when the host has updated its copies. What memwall simulates as offload:what=optimizer with cpu_adam (after ZeRO-Offload).

The optimizer object stays the program's. Its parameters become copies on the host; hooks around its `step` bring gradients
and send parameters back. In the first step gradients stay on the device as well. If the program changes them between backward
and the step (clipping, sums over processes) they stay in every step, and are copied at the step; if not, the device's memory is
given back as soon as they have left.
"""

import torch
import torch.nn.utils.clip_grad as clip_grad

from .errors import ApplyError
from .streams import Streams

IMPLEMENTATION = "cpu_adam"
FUSED = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad)  # with a fused update on the host


class _Copy:
    """A parameter of the model and its copy on the host."""

    def __init__(self, parameter, pinned):
        self.parameter = parameter
        self.host = torch.nn.Parameter(_on_host(parameter.detach(), pinned), requires_grad=True)
        self.version = parameter._version  # of which the host has the values
        self.gradient = _on_host(torch.zeros_like(parameter), pinned)
        self.sent = None  # (gradient, version) of the last copy down
        self.left = None  # the event of that copy
        self.released = False  # the device holds no gradient any more
        self.arrivals = self.expected = 0  # of gradients in this step, and in the one before


class HostOptimizer:
    """`settings`: realization.optimizer of the plan."""

    def __init__(self, optimizer, settings):
        found = settings.get("implementation")
        if found != IMPLEMENTATION or settings.get("place", "host") != "host":
            raise ApplyError(f"The plan updates parameters by '{found}' in '{settings.get('place')}'; memwall_apply can "
                             f"'{IMPLEMENTATION}' in 'host'. Others are not implemented.")
        self.optimizer = optimizer
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for p in parameters:
            if hasattr(p, "__tensor_flatten__"):
                raise ApplyError("The optimizer's parameters are sharded (DTensor) already; of those memwall_apply cannot keep "
                                 "the states on the host. Use fully_shard(..., offload_policy=CPUOffloadPolicy()).")
        device_type = parameters[0].device.type
        self.streams = Streams(device_type, settings.get("side_streams", True), not settings.get("pinned", True))
        pinned = settings.get("pinned", True) and device_type == "cuda"
        self.copies = {p: _Copy(p, pinned) for p in parameters if p.requires_grad}
        self._move_states()
        self.zero_grad = optimizer.zero_grad
        optimizer.zero_grad = self._zero_grad
        self.handles = [optimizer.register_step_pre_hook(self._before), optimizer.register_step_post_hook(self._after)]
        self.handles += [p.register_post_accumulate_grad_hook(self._arrived) for p in self.copies]
        self.buffers = settings.get("buffers", 5)  # copies under way before the oldest one's memory is waited for
        self.in_flight = []
        self.releases = None  # from the second step on: does the device's memory go when gradients have left?
        self._guard_clipping()
        self.counts = {"host_steps": 0, "gradient_bytes": 0, "parameter_bytes": 0}

    @property
    def implementation(self):
        """What runs the update, by name."""
        group = self.optimizer.param_groups[0]
        kind = type(self.optimizer)
        return f"{kind.__module__}.{kind.__name__}(fused={bool(group.get('fused'))}) on the host"

    def _move_states(self):
        fused = isinstance(self.optimizer, FUSED)
        for group in self.optimizer.param_groups:
            group["params"] = [self.copies[p].host if p in self.copies else p for p in group["params"]]
            if fused and not group.get("differentiable") and not group.get("amsgrad") and "fused" in group:
                group["fused"], group["foreach"] = True, False  # one pass over memory, as is simulated
        for p, copy in self.copies.items():
            if p in self.optimizer.state:
                state = self.optimizer.state.pop(p)
                self.optimizer.state[copy.host] = {key: value.cpu() if isinstance(value, torch.Tensor) else value
                                                   for key, value in state.items()}

    def _guard_clipping(self):
        """A norm over the gradients that the host does not have yet would clip too little, silently."""
        original = self.total_norm = clip_grad._get_total_norm

        def guarded(tensors, *others, **named):
            tensors = list(tensors)
            ours = {id(copy.parameter.grad) for copy in self.copies.values()}
            concerns_us = not tensors or any(id(t) in ours for t in tensors)
            if concerns_us and any(copy.released for copy in self.copies.values()):
                raise ApplyError("Gradients are clipped, and they are on the host already: in the first step they were not "
                                 "changed between backward and the step. Expected the same in every step.")
            return original(tensors, *others, **named)

        clip_grad._get_total_norm = guarded

    def remove(self):
        for handle in self.handles:
            handle.remove()
        clip_grad._get_total_norm = self.total_norm
        self.optimizer.__dict__.pop("zero_grad", None)
        originals = {id(copy.host): p for p, copy in self.copies.items()}
        for group in self.optimizer.param_groups:
            group["params"] = [originals.get(id(p), p) for p in group["params"]]
        for p, copy in self.copies.items():
            if copy.host in self.optimizer.state:
                state = self.optimizer.state.pop(copy.host)
                self.optimizer.state[p] = {
                    key: value.to(p.device) if isinstance(value, torch.Tensor) and value.dim() else value
                    for key, value in state.items()}

    # ---- gradients go down

    def _arrived(self, parameter):
        """Autograd has added to the gradient. With accumulation only the last time in a step counts, which the step
        before has told; between processes gradients are summed later, and are copied at the step."""
        copy = self.copies[parameter]
        copy.arrivals += 1
        if copy.released:
            raise ApplyError(f"A parameter of shape {tuple(parameter.shape)} has a gradient {copy.arrivals} times in this step, and "
                             f"had one {copy.expected} times in the step before; expected as many backward passes in every step.")
        changes_later = self.releases is False or (
            torch.distributed.is_available() and torch.distributed.is_initialized())
        if copy.arrivals >= copy.expected and not changes_later:
            self._send(copy)
            self.in_flight.append(copy)
            while self.releases and len(self.in_flight) > self.buffers:
                self._release(self.in_flight.pop(0))

    def _send(self, copy):
        gradient = copy.parameter.grad
        with torch.no_grad():
            copy.left = self.streams.copy(self.streams.out, copy.gradient, gradient.detach())
        copy.sent = (gradient, gradient._version)
        self.counts["gradient_bytes"] += gradient.numel() * gradient.element_size()

    def _release(self, copy):
        self.streams.wait(copy.left)
        copy.sent, copy.released = None, True
        copy.parameter.grad = None

    def _before(self, _optimizer, args, named):
        # args[0] is the optimizer
        if any(argument is not None for argument in args[1:]) or named.get("closure") is not None:
            raise ApplyError("optimizer.step was called with a closure; expected step() behind backward where the plan keeps the "
                             "optimizer's states on the host.")
        again = [copy for copy in self.copies.values() if self._is_newer(copy)]
        for copy in again:
            self._send(copy)
        if self.releases is None and any(copy.arrivals for copy in self.copies.values()):
            self.releases = not again
        for copy in self.copies.values():
            copy.host.grad = copy.gradient if copy.released or copy.parameter.grad is not None else None
            if self.releases and copy.parameter.grad is not None:
                self._release(copy)
            copy.expected, copy.arrivals, copy.sent, copy.released = copy.arrivals, 0, None, False
        self.in_flight = []
        self.streams.synchronize(self.streams.out)
        self._learn_changes()

    def _learn_changes(self):
        """The program has loaded other parameters, or clamped them: the host goes on from these."""
        for copy in self.copies.values():
            if copy.parameter._version != copy.version:
                copy.host.data.copy_(copy.parameter.detach())

    @staticmethod
    def _is_newer(copy):
        """Is the gradient on the device another one than the host has?"""
        gradient = copy.parameter.grad
        return gradient is not None and not (copy.sent and copy.sent[0] is gradient and copy.sent[1] == gradient._version)

    # ---- parameters come back

    def _after(self, _optimizer, _args, _named):
        with torch.no_grad():
            pairs = [(copy.parameter.detach(), copy.host.detach()) for copy in self.copies.values() if copy.host.grad is not None]
            self.streams.copy_all(self.streams.back, pairs)
            for copy in self.copies.values():
                if copy.host.grad is not None:
                    torch.autograd.graph.increment_version(copy.parameter)
                copy.version = copy.parameter._version
        self.counts["host_steps"] += 1
        self.counts["parameter_bytes"] += sum(target.numel() * target.element_size() for target, _ in pairs)

    def _zero_grad(self, set_to_none=True):
        self.zero_grad(set_to_none)
        for copy in self.copies.values():
            if set_to_none:
                copy.parameter.grad = None
            elif copy.parameter.grad is not None:
                copy.parameter.grad.zero_()


def _on_host(tensor, pinned):
    host = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=pinned)
    host.copy_(tensor)
    return host
