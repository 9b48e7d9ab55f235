"""The optimizer's update on the host, its states there: gradients go down as backward finishes them, parameters come back
when the host has updated its copies. What memwall simulates as offload:what=optimizer with cpu_adam (after ZeRO-Offload).

The optimizer object stays the program's. Its parameters become copies on the host; hooks around its `step` bring gradients
and send parameters back. From the second step on the device's memory of a gradient is given back as soon as it has left; then
it is on the host alone until `zero_grad`. Where the program reads it there (`p.grad` of the model's parameters is watched),
or autograd adds to it, it comes back first. What the program has read or set it may have changed: at the step that is copied
again. If it does so in the first step (clipping, norms, sums over processes) gradients stay on the device in every step.
"""

import sys

import torch

from .errors import ApplyError
from .streams import Streams
from .watched import DATA, grad_of, set_grad, unwatch, watch

IMPLEMENTATION = "cpu_adam"
FUSED = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad)  # with a fused update on the host
FLAGS = ("fused", "foreach")


class _Copy:
    """A parameter of the model and its copy on the host."""

    def __init__(self, parameter, pinned):
        self.parameter = parameter
        self.host = torch.nn.Parameter(_on_host(parameter.detach(), pinned), requires_grad=True)
        self.version = parameter._version  # of which the host has the values; None: it may have others
        self.host_version = self.host._version
        self.gradient = _on_host(torch.zeros_like(parameter), pinned)
        self.strides = parameter.stride()  # of the gradient on the device
        self.forget()
        self.expected = 0  # arrivals in the step before

    def forget(self):
        """There is no gradient any more."""
        self.sent = None  # version of the gradient that was copied down last; None: the host has another one
        self.left = None  # the event of that copy
        self.released = False  # the gradient is on the host alone
        self.arrivals = 0  # of gradients in this step

    @property
    def has_gradient(self):
        return self.released or grad_of(self.parameter) is not None

    @property
    def is_newer(self):
        """Is the gradient on the device another one than the host has?"""
        gradient = grad_of(self.parameter)
        return gradient is not None and self.sent != gradient._version


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
        device = parameters[0].device
        self.streams = Streams(device, settings.get("side_streams", True), not settings.get("pinned", True))
        pinned = settings.get("pinned", True) and device.type == "cuda"
        self.copies = {p: _Copy(p, pinned) for p in parameters if p.requires_grad}
        self.counts = {"host_steps": 0, "gradient_bytes": 0, "gradients_back": 0, "parameter_bytes": 0}
        self.buffers = settings.get("buffers", 5)  # copies under way before the oldest one's memory is waited for
        self.in_flight = []
        self.releases = None  # from the second step on: does the device's memory go when gradients have left?
        self.was_read = False  # has the program read or set a gradient behind its copy to the host?
        self.sole_owners = _sole_owners()
        self.flags = [{key: group[key] for key in FLAGS if key in group} for group in optimizer.param_groups]
        self._move_states()
        self.zero_grad = optimizer.zero_grad
        optimizer.zero_grad = self._zero_grad
        self.handles = [optimizer.register_step_pre_hook(self._before), optimizer.register_step_post_hook(self._after)]
        self.handles += [p.register_post_accumulate_grad_hook(self._arrived) for p in self.copies]
        watch(self.copies, self)
        self.host_side = _HostSide(self.copies)
        watch((copy.host for copy in self.copies.values()), self.host_side)

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

    def remove(self):
        for handle in self.handles:
            handle.remove()
        self.optimizer.__dict__.pop("zero_grad", None)
        for copy in self.copies.values():
            if copy.released:
                self._bring_back(copy)
        unwatch(self.copies)
        unwatch(copy.host for copy in self.copies.values())
        originals = {id(copy.host): p for p, copy in self.copies.items()}
        for i, group in enumerate(self.optimizer.param_groups):
            group["params"] = [originals.get(id(p), p) for p in group["params"]]
            group.update(self.flags[i] if i < len(self.flags) else {})
            steps_there = group.get("fused") or group.get("capturable")  # a fused update wants its counter on the device
            for p in group["params"]:
                if p in self.copies and self.copies[p].host in self.optimizer.state:
                    state = self.optimizer.state.pop(self.copies[p].host)
                    self.optimizer.state[p] = {
                        key: value.to(p.device) if isinstance(value, torch.Tensor) and (value.dim() or steps_there) else value
                        for key, value in state.items()}

    # ---- gradients go down

    def _arrived(self, parameter):
        """Autograd has added to the gradient. With accumulation only the last time in a step counts, which the step
        before has told; between processes gradients are summed later, and are copied at the step."""
        copy = self.copies[parameter]
        self.host_side.is_open = False
        copy.arrivals += 1
        copy.sent = None
        if copy.released:
            self._add(copy)
        changes_later = self.releases is False or grad_of(parameter).requires_grad or (
            torch.distributed.is_available() and torch.distributed.is_initialized())
        if copy.arrivals >= copy.expected and not changes_later:
            self._send(copy)
            self.in_flight = [other for other in self.in_flight if other is not copy] + [copy]
            while self.releases and len(self.in_flight) > self.buffers:
                self._release(self.in_flight.pop(0))

    def _add(self, copy):
        """To the gradient on the host, which has been left there: autograd has taken it for the first one."""
        new = grad_of(copy.parameter)
        old = self._bring_back(copy)
        with torch.no_grad() if not new.requires_grad else torch.enable_grad():
            set_grad(copy.parameter, old + new if new.requires_grad else old.add_(new))
        copy.sent = None

    def _send(self, copy):
        gradient = grad_of(copy.parameter)
        if gradient.layout is not torch.strided or gradient.dtype != copy.gradient.dtype:
            raise ApplyError(f"A parameter of shape {tuple(gradient.shape)} and type {copy.gradient.dtype} has a gradient of layout "
                             f"{gradient.layout} and type {gradient.dtype}; expected a dense one of the parameter's type where the "
                             "plan keeps the optimizer's states on the host.")
        with torch.no_grad():
            copy.left = self.streams.copy(self.streams.out, copy.gradient, gradient.detach())
        copy.sent, copy.strides = gradient._version, gradient.stride()
        self.counts["gradient_bytes"] += gradient.numel() * gradient.element_size()

    def _release(self, copy):
        if grad_of(copy.parameter) is None or copy.is_newer or self._is_shared(copy.parameter):
            return
        self.streams.wait(copy.left)
        copy.sent, copy.released = None, True
        set_grad(copy.parameter, None)

    def _is_shared(self, parameter):
        """Has the program its gradient, a view of that, or the memory? Then nothing is won by giving it up, and what autograd
        adds must go to the same memory."""
        return any(found > alone for found, alone in zip(_owners(parameter), self.sole_owners))

    def _bring_back(self, copy):
        with torch.no_grad():
            p = copy.parameter
            gradient = torch.empty_strided(p.shape, copy.strides, dtype=p.dtype, device=p.device)
            self.streams.wait(self.streams.copy(self.streams.back, gradient, copy.gradient))
            self.streams.synchronize(self.streams.back)  # the host may write there next
            set_grad(p, gradient)
        copy.sent, copy.released = gradient._version, False
        self.counts["gradients_back"] += 1
        return gradient

    def _before(self, _optimizer, args, named):
        # args[0] is the optimizer
        if any(argument is not None for argument in args[1:]) or named.get("closure") is not None:
            raise ApplyError("optimizer.step was called with a closure; expected step() behind backward where the plan keeps the "
                             "optimizer's states on the host.")
        self.host_side.require_unchanged()
        again = [copy for copy in self.copies.values() if copy.is_newer]
        for copy in again:
            self._send(copy)
        if self.releases is None and any(copy.arrivals for copy in self.copies.values()):
            self.releases = not again and not self.was_read
        self.host_side.is_open = True
        for copy in self.copies.values():
            copy.host.grad = copy.gradient if copy.has_gradient else None
            if self.releases:
                self._release(copy)
            copy.expected, copy.arrivals = copy.arrivals, 0
        self.in_flight = []
        self.streams.synchronize(self.streams.out)
        self._learn_changes()

    def _learn_changes(self):
        """The program has loaded other parameters, or clamped them: the host goes on from these."""
        for copy in self.copies.values():
            if copy.parameter._version != copy.version:
                copy.host.data.copy_(copy.parameter.detach())

    # ---- parameters come back

    def _after(self, _optimizer, _args, _named):
        with torch.no_grad():
            pairs = [(copy.parameter.detach(), copy.host.detach()) for copy in self.copies.values() if copy.host.grad is not None]
            self.streams.copy_all(self.streams.back, pairs)
            for copy in self.copies.values():
                if copy.host.grad is not None:
                    torch.autograd.graph.increment_version(copy.parameter)
                copy.version, copy.host_version = copy.parameter._version, copy.host._version
        self.host_side.is_open = False
        self.counts["host_steps"] += 1
        self.counts["parameter_bytes"] += sum(target.numel() * target.element_size() for target, _ in pairs)

    def _zero_grad(self, set_to_none=True):
        self.in_flight = []
        if not set_to_none:
            self.streams.synchronize(self.streams.out)  # copies that nobody has waited for: the host writes there
        self.host_side.is_open = True
        self.zero_grad(set_to_none)  # of what has no copy
        self.host_side.is_open = False
        for copy in self.copies.values():
            gradient, released = grad_of(copy.parameter), copy.released
            copy.forget()
            if set_to_none:
                set_grad(copy.parameter, None)
            elif gradient is not None:
                gradient.detach_() if gradient.grad_fn is not None else gradient.requires_grad_(False)
                gradient.zero_()
            elif released:
                copy.gradient.zero_()
                copy.released = True

    # ---- what the program does with the model's parameters (watched.py)

    def read_grad(self, parameter):
        copy = self.copies.get(parameter)
        if copy is not None:
            if copy.released:
                self._bring_back(copy)
            if copy.sent is not None:
                self.was_read, copy.sent = True, None  # it may be changed, through its `data` without a new version
        return grad_of(parameter)

    def write_grad(self, parameter, gradient):
        set_grad(parameter, gradient)
        copy = self.copies.get(parameter)
        if copy is None:
            return
        if gradient is None:
            copy.forget()
        else:
            self.was_read = self.was_read or copy.sent is not None
            copy.sent, copy.released = None, False

    def read_data(self, parameter):
        self._may_change(parameter)
        return DATA.__get__(parameter)

    def write_data(self, parameter, value):
        self._may_change(parameter)
        DATA.__set__(parameter, value)

    def _may_change(self, parameter):
        """What is written through `data` has no new version."""
        if parameter in self.copies:
            self.copies[parameter].version = None


class _HostSide:
    """What the program does with the optimizer's parameters, which are the copies: nothing, outside of the step."""

    def __init__(self, copies):
        self.copies = {copy.host: copy for copy in copies.values()}
        self.is_open = False  # the optimizer is at work

    def require_unchanged(self):
        for copy in self.copies.values():
            if copy.host._version != copy.host_version:
                self._refuse(copy.host, "was changed through optimizer.param_groups")

    def read_grad(self, host):
        if self.is_open or host not in self.copies:
            return grad_of(host)
        if self.copies[host].has_gradient:
            self._refuse(host, "has a gradient, which was asked for through optimizer.param_groups (GradScaler does that)")
        return None

    def write_grad(self, host, gradient):
        if not self.is_open and host in self.copies:
            if gradient is not None:
                self._refuse(host, "was given a gradient through optimizer.param_groups")
            self.copies[host].parameter.grad = None
        set_grad(host, gradient)

    def read_data(self, host):
        if not self.is_open and host in self.copies:
            self._refuse(host, "was read or changed by `data` through optimizer.param_groups")
        return DATA.__get__(host)

    def write_data(self, host, value):
        self.read_data(host)
        DATA.__set__(host, value)

    @staticmethod
    def _refuse(host, what):
        raise ApplyError(f"A parameter of shape {tuple(host.shape)} {what}; the plan keeps the optimizer's parameters on the host, as "
                         "copies. Expected the program to use the model's own, by model.parameters(). Not implemented.")


def _owners(parameter):
    """References to a parameter's gradient, and to its memory."""
    gradient = grad_of(parameter)
    return sys.getrefcount(gradient), torch._C._storage_Use_Count(gradient.untyped_storage()._cdata)


def _sole_owners():
    """The same, of a gradient that only autograd has."""
    parameter = torch.zeros(1, requires_grad=True)
    set_grad(parameter, torch.zeros(1))
    return _owners(parameter)


def _on_host(tensor, pinned):
    host = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=pinned)
    host.copy_(tensor)
    return host
