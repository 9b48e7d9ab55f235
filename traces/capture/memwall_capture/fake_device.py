"""A CUDA device that is not there: tensors on "cuda" have shapes, storages and lifetimes, and no data.

FakeTensorMode gives the shapes. What it leaves to a real device is answered here as CUDA would: which attention is
taken, which optimizers use lists of tensors, that bf16 autocast exists. Two things need care without a GPU:

- The autograd engine asks CUDA for streams wherever a tensor is on "cuda", and fails. So the engine, and only the
  engine, is told that tensors are on "meta", for which it needs none. It asks in C++, through prim.device, at known
  moments: for what the operator just run has made, when a gradient accumulator is made, in Function.apply, and during
  backward.
- Values do not exist. `.item()` answers 0 (1 on the host); shapes that depend on values are refused.
"""

import contextlib
import functools
import os
import sys

import torch
import torch._compile
import torch._dynamo.eval_frame
import torch.utils._device
import torch.utils.checkpoint
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.optim.optimizer import _foreach_supported_types as optimizer_types
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._foreach_utils import _foreach_supported_types as list_types

from . import attention, compiled, data_parallel, dispatch_modes, fake_cuda, flat_parameters
from .errors import CaptureError
from .patches import patches
from .session import CaptureMode, _desugars, installed_mode
from .storages import plain_tensors

if torch.distributed.is_available():
    import torch.distributed.fsdp

OLDEST = (2, 6)
META = torch.device("meta")
ATTENTION = attention.__file__
PRIM_DEVICE = torch.ops.prim.device.default
PINS = {torch.ops.aten._pin_memory.default}  # has no shape function
PINNED = {torch.ops.aten.is_pinned.default}
ITEM = torch.ops.aten._local_scalar_dense.default
WRAPPERS = {torch._compile.__file__, torch._dynamo.eval_frame.__file__, torch._ops.__file__}
DEVICE_MESH = tuple(os.path.join("torch", "distributed", name) for name in ("device_mesh.py", "_mesh_layout.py"))
BETWEEN = {torch._tensor.__file__, torch.utils._device.__file__}
ENGINE = torch.autograd.graph._engine_run_backward.__code__


class _Fake(FakeTensorMode):
    """Never touches a device, whatever torch.cuda.is_available() says here."""

    @property
    def avoid_device_init(self):
        return True

    def _prep_args_for_hash(self, result, args, *others):
        """Results are kept by arguments, and a storage among these (Tensor.set_) would live as long."""
        values = args.values() if isinstance(args, dict) else args
        if any(isinstance(value, torch.UntypedStorage) for value in values):
            raise fake_tensor._BypassDispatchCache("a storage")
        return super()._prep_args_for_hash(result, args, *others)


def _caller():
    """The frame that called torch: below the modes through which the call came."""
    frame = sys._getframe(2)
    while frame.f_code.co_name == "__torch_dispatch__" or frame.f_code.co_filename in WRAPPERS:
        frame = frame.f_back
    return frame


class FakeDevice(CaptureMode):
    fake = True

    def __init__(self):
        super().__init__()
        self.fresh, self.place = set(), None
        self.calls = 0  # of the Python interface of torch
        self.asking_for_history = False
        self.modes_at_work = 0  # of the program's own, above this one
        self.apply_code = None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        caller = _caller()
        if func is PRIM_DEVICE:
            return self.answer(args[0], caller)
        if any(_desugars(t) for t in types):
            return NotImplemented
        if func is ITEM:
            return self._item(args[0])
        if func in PINNED:
            return self.storages.of(args[0]).place == "host_pinned"
        if func._schema.name == "_c10d_functional::wait_tensor":
            return args[0]  # as on a device; the shape function makes another
        out = self._operator(func, args, kwargs, caller)
        self.expect_history(func, args, out, caller)
        return out

    # ---- what the engine is told ----

    def expect_history(self, func, args, out, caller):
        """Autograd will now ask for the device of what was made or changed: once each, before C++ returns to Python."""
        self.fresh = {id(t) for t in plain_tensors(out)}
        if func._schema.is_mutable:
            self.fresh.update(id(t._base) for t in plain_tensors(args) if t._base is not None)
        self.place = (self.calls, id(caller), caller.f_lasti)

    def answer(self, tensor, caller):
        real = tensor.fake_device if isinstance(tensor, FakeTensor) else PRIM_DEVICE(tensor)
        if real.type != "cuda" or self.modes_at_work:  # those run below autograd
            return real
        if self.asking_for_history or caller.f_code is ENGINE or caller.f_code is self.apply_code:
            return META
        if id(tensor) in self.fresh and self.place == (self.calls, id(caller), caller.f_lasti):
            self.fresh.discard(id(tensor))
            return META
        return real

    # ---- operators ----

    def _operator(self, func, args, kwargs, caller):
        device = kwargs.get("device")
        in_engine = torch._C._current_graph_task_id() != -1
        if device is not None and device.type == "meta" and (in_engine or caller.f_code.co_filename == ATTENTION):
            # C++ has asked a gradient for its device, or the queries that a causal mask is made for.
            kwargs = {**kwargs, "device": torch.device("cuda", 0)}
        pinned = kwargs.pop("pin_memory", None) or func in PINS
        try:
            if func in PINS:
                out = torch.empty_like(args[0], device="cpu")
            elif func.namespace == "c10d" and not _has_shape_function(func):
                out = _collective_done(func, args)
            else:
                out = func(*args, **kwargs)
        except (fake_tensor.DataDependentOutputException, fake_tensor.DynamicOutputShapeException) as e:
            raise CaptureError(
                f"the shape or value of {func._schema.name} depends on data, and fake tensors have none. Write the "
                "step so that shapes follow from shapes (a fixed capacity per expert, a mask instead of selected rows), or "
                "capture it on a GPU.") from e
        outputs = plain_tensors(out)
        if self.recorder is not None and not self.asking_for_history:
            self.recorder.operator(func, args, kwargs, out)
        else:
            for t in outputs:
                self.storages.of(t, func._schema.name)
        if pinned:
            self.storages.of(outputs[0]).place = "host_pinned"
        if func._schema.is_mutable and func._schema.name.startswith("aten::_foreach_"):
            for t in plain_tensors(args[0]):  # of fake tensors PyTorch forgets that
                torch.autograd.graph.increment_version(t)
        return out

    def _item(self, tensor):
        if self.recorder is not None:
            self.recorder.item(tensor)
        value = 0 if tensor.device.type == "cuda" else 1
        if tensor.dtype == torch.bool:
            return bool(value)
        return float(value) if tensor.dtype.is_floating_point else value

    def attention_chosen(self, backend):
        if self.recorder is not None:
            self.recorder.attention.add(backend)


@functools.cache
def _has_shape_function(func):
    return torch._C._dispatch_has_kernel_for_dispatch_key(func._schema.name, "Meta") or \
        torch._C._dispatch_has_kernel_for_dispatch_key(func._schema.name, "CompositeExplicitAutograd")


def _collective_done(func, args):
    """What a collective that has no shape function (in torch 2.10) gives back: what it has written, and its work."""
    work = torch._C._distributed_c10d.FakeWork().boxed()
    return work if len(func._schema.returns) == 1 else (args[0], work)


def _called_from(file):
    """Is the caller of torch in `file`? Operators like == and `with torch.device` have frames of torch between."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename in BETWEEN:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.endswith(file)


def _with_index(values):
    """Which device "cuda" is, Tensor.to asks CUDA in torch before 2.9 or so: it is the first."""
    return [torch.device("cuda", 0) if isinstance(value, (str, torch.device)) and str(value) == "cuda" else value
            for value in values]


class _Calls(TorchFunctionMode):
    """Counts calls of torch from Python, and lets autograd ask about their arguments first.

    A parameter is asked for its device by autocast and by what chooses kernels, which must hear "cuda", and by its
    gradient accumulator when that is made, which must not. So it is made here, before the call, while it cannot be
    confused; the call then finds it. The same with a view whose base has changed: its history is made anew."""

    def __init__(self, device):
        super().__init__()
        self.device = device

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if _called_from(DEVICE_MESH):
            with _disable_current_modes():  # which ranks a mesh has is computed with real tensors
                return func(*args, **kwargs)
        if func is torch.Tensor.to:
            args, kwargs = _with_index(args), {key: _with_index([value])[0] for key, value in kwargs.items()}
        edges = _histories(self.device, [args, kwargs]) if torch.is_grad_enabled() else None
        self.device.calls += 1
        out = func(*args, **kwargs)
        del edges
        return out


def _histories(device, values):
    """What of autograd's graph must be there before C++ uses these tensors; to be held until it has."""
    edges = []
    for t in plain_tensors(values):
        if not t.requires_grad:
            continue
        before, device.asking_for_history = device.asking_for_history, True
        try:
            if t.is_leaf:
                edges.append(torch.autograd.graph.get_gradient_edge(t))
            elif t._is_view():
                t.grad_fn  # noqa: B018
        finally:
            device.asking_for_history = before
    return edges


def _patch_saved_inputs(device, patch):
    """A checkpoint keeps its inputs as autograd does, maybe before anything else has used them."""
    save = getattr(torch.utils.checkpoint, "_make_saved_tensor", None)
    if save is None:
        return

    def saved(tensor, **options):
        edges = _histories(device, [tensor])
        kept = save(tensor, **options)
        del edges
        return kept

    patch(torch.utils.checkpoint, "_make_saved_tensor", saved)


def _patch_engine(device, patch):
    """A function mode is off inside of the call that it was shown; what backward calls is to be watched too."""
    original = torch.autograd._engine_run_backward

    def run_backward(*args, **kwargs):
        if installed_mode() is not device:  # a compiler's own
            return original(*args, **kwargs)
        with _Calls(device):
            return original(*args, **kwargs)

    patch(torch.autograd, "_engine_run_backward", run_backward)


def _patch_apply(device, patch):
    """Function.apply gives its results their place in the graph from C++, called from this frame."""
    own = torch.autograd.Function.__dict__.get("apply")
    if isinstance(own, classmethod):  # before it moved to C++: its own frame is the one that calls
        device.apply_code = own.__func__.__code__
        return

    def apply(cls, *args, **kwargs):
        return own.__get__(None, cls)(*args, **kwargs)

    device.apply_code = apply.__code__
    patch(torch.autograd.Function, "apply", classmethod(apply))


def _patch_distributed(device, patch):
    """What only orders the device's work is left out."""
    if not torch.distributed.is_available():
        return
    data_parallel.patch_all(device, patch)
    flat_parameters.patch_all(device, patch)
    from torch.distributed.device_mesh import DeviceMesh
    original = DeviceMesh.__init__

    def __init__(self, *args, **kwargs):
        with _disable_current_modes():  # which ranks it has is computed with real tensors
            original(self, *args, **kwargs)

    patch(DeviceMesh, "__init__", __init__)
    collectives = sys.modules.get("torch.distributed.fsdp._fully_shard._fsdp_collectives")
    if hasattr(collectives, "record_grad_output_stream"):
        patch(collectives, "record_grad_output_stream", lambda *_: None)


def _swap_tensors(a, b):
    """What Module.to does with fake parameters, without its refusal of weak references: the fake mode itself holds
    some, by which nothing is looked up that a swap would change."""
    a.__dict__, b.__dict__ = b.__dict__, a.__dict__
    torch._C._swap_tensor_impl(a, b)


def _patch_storage(device, patch):
    resize = torch.UntypedStorage.resize_

    def resize_(storage, size):
        before = storage.nbytes()
        result = resize(storage, size)
        device.storages.resized(storage, before)
        return result

    patch(torch.UntypedStorage, "resize_", resize_)
    address = torch.UntypedStorage.data_ptr

    def data_ptr(storage):
        """Of memory that is not there: the same for the same storage, 0 where it has no bytes."""
        if storage.device.type != "meta":
            return address(storage)
        return storage._cdata if storage.nbytes() else 0

    patch(torch.UntypedStorage, "data_ptr", data_ptr)
    place = torch.Tensor.data_ptr

    def tensor_data_ptr(tensor):
        if not isinstance(tensor, FakeTensor):
            return place(tensor)
        start = tensor.untyped_storage().data_ptr()
        return start + tensor.storage_offset() * tensor.element_size() if start else 0

    patch(torch.Tensor, "data_ptr", tensor_data_ptr)


def _require_version():
    """Older fake modes have other interfaces."""
    if compiled.version() < OLDEST:
        raise CaptureError(f"found torch {torch.__version__}; fake() needs 2.10 or newer (2.6 where there is a GPU). Capture on "
                           "a GPU with memwall_capture.record, which needs no fake(), or with a newer torch.")


def _require_no_driver():
    """Before 2.10 PyTorch asks the driver even where the tensor is fake."""
    try:
        torch.empty(2, device="cuda:0")[0].copy_(torch.empty(2, device="cuda:0")[1])
    except (RuntimeError, AssertionError) as e:
        raise CaptureError(f"found torch {torch.__version__}, which asks the CUDA driver about tensors that are fake, and finds "
                           f"none ({str(e).splitlines()[0]}). fake() needs 2.10 or newer, or a machine with a GPU.") from e


@contextlib.contextmanager
def fake():
    """Inside, the device "cuda" is imaginary. Nested calls do nothing more."""
    if installed_mode() is not None:
        yield installed_mode()
        return
    _require_version()
    with patches() as patch, contextlib.ExitStack() as stack:
        device = FakeDevice()
        patch(fake_tensor, "init_gpu_context", lambda _device: None)
        fake_cuda.patch_all(device, patch)
        _patch_apply(device, patch)
        _patch_engine(device, patch)
        _patch_saved_inputs(device, patch)
        dispatch_modes.patch_all(device, patch, PRIM_DEVICE, _caller)
        _patch_storage(device, patch)
        _patch_distributed(device, patch)
        device.compiler = compiled.patch_all(device, patch)
        if device.compiler is not None:
            stack.callback(device.compiler.forget)
        patch(torch.utils, "swap_tensors", _swap_tensors)
        # Assigning to .data, as older versions do, leaves a fake parameter where it was.
        stack.callback(torch.__future__.set_swap_module_params_on_conversion,
                       torch.__future__.get_swap_module_params_on_conversion())
        torch.__future__.set_swap_module_params_on_conversion(True)
        for types in (optimizer_types, list_types):
            if FakeTensor not in types:
                types.append(FakeTensor)
                stack.callback(types.remove, FakeTensor)
        library = torch.library.Library("aten", "IMPL")
        stack.callback(library._destroy)
        library.impl("scaled_dot_product_attention", attention.attention(device.attention_chosen), "AutogradCUDA")
        stack.enter_context(_Fake(allow_non_fake_inputs=True))
        stack.enter_context(device)
        stack.enter_context(_Calls(device))
        _require_no_driver()
        yield device
