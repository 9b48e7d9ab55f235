"""torch.compile. On fake tensors Inductor compiles for a GPU that is not there, and what its program launches, allocates and
frees is recorded. On a GPU compiled code is refused: its kernels bypass what is recorded here.

Dynamo, AOTAutograd and Inductor run as they are, out of sight of the recorder. The program that Inductor writes is
Python: it runs under the recorder, with stand-ins for its kernels (compiled_kernels.py).
"""

import contextlib
import os
import re
import sys

import torch
import torch._dynamo.eval_frame as eval_frame
from torch.utils._python_dispatch import _disable_current_modes

from .errors import CaptureError

INSTEAD = ("Capture the model without torch.compile and ask `memwall run --policy compile`, or profile the compiled step on "
           "the GPU with torch.profiler and import that.")
ON_DEVICE = ("the step runs compiled code (torch.compile), whose kernels bypass what is recorded on a GPU. Not implemented. "
             f"Capture it inside of memwall_capture.fake(), which records what Inductor's program launches. {INSTEAD}")
OLDEST = (2, 11)
ASK_FOR_MODES = ("any_torch_dispatch_mode_on_stack", "is_in_any_mode_without_ignore_compile_internals",
                 "is_in_torch_dispatch_mode")  # by version: under a mode nothing would be compiled
OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")  # this package: Dynamo leaves it as it is
MODES = {"max_autotune": 'max_autotune (mode="max-autotune"), whose choice of kernels is measured on the GPU',
         "max_autotune_gemm": "max_autotune_gemm, whose choice of kernels is measured on the GPU",
         "triton.cudagraphs": 'CUDA graphs (mode="reduce-overhead")',
         "cpp_wrapper": "cpp_wrapper: the generated program is C++", "aot_inductor.package": "AOTInductor"}


def version():
    return tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])


def too_old():
    return CaptureError(f"the step runs compiled code (torch.compile), and this is torch {torch.__version__}; expected "
                        f"{OLDEST[0]}.{OLDEST[1]} or newer to record what it launches. {INSTEAD}")


def refuse(model, fake):
    """Before the step: a model that is compiled where that cannot be recorded."""
    if fake and version() >= OLDEST:
        return
    if torch.compiler.is_compiling() or (model is not None and any(
            type(m).__name__ == "OptimizedModule" or getattr(m, "_compiled_call_impl", None) is not None
            for m in model.modules())):
        raise too_old() if fake else CaptureError(ON_DEVICE)


def refuse_calls(patch, fake):
    """In the step: what torch.compile has wrapped sets the frame evaluator when it is called, and runs as it is under a
    mode."""
    if fake and version() >= OLDEST:
        return

    def entering(*_call):
        raise too_old() if fake else CaptureError(ON_DEVICE)

    _watch_calls(patch, entering, lambda: None)


def _watch_calls(patch, entering, leaving):
    """`entering(function, inputs, named inputs)` when compiled code is called, `leaving()` when it returns."""
    def called():
        frame = sys._getframe(2)
        for _ in range(2):
            if frame is not None and isinstance(frame.f_locals.get("self"), eval_frame.OptimizeContext):
                return frame
            frame = frame.f_back if frame is not None else None
        return None

    def watching(original):
        def set_eval_frame(callback):
            if callback in (None, False):
                before = original(callback)  # what follows is not to be compiled
                if callback is None and called() is not None:
                    leaving()
                return before
            frame = called()
            if frame is not None:
                inside = frame.f_locals
                entering(inside.get("fn"), inside.get("args", ()), inside.get("kwargs", {}))
            return original(callback)

        return set_eval_frame

    for name in ("set_eval_frame", "_maybe_set_eval_frame"):  # by version
        original = getattr(eval_frame, name, None)
        if original is not None:
            patch(eval_frame, name, watching(original))


def plain_name(name):
    """Without what torch.compile and FullyShardedDataParallel put into the names of what they wrap."""
    return ".".join(part for part in name.split(".") if part not in ("_orig_mod", "_fsdp_wrapped_module"))


def watch_inputs(mode, module, hook):
    """`hook(module, inputs, named inputs)` when `module` is called, compiled or not. Gives back what ends that."""
    compiler = getattr(mode, "compiler", None)
    if compiler is None:
        return module.register_forward_pre_hook(hook, with_kwargs=True, prepend=True).remove
    compiler.watch_inputs(module, hook)
    return lambda: compiler.watch_inputs(None, None)


class Compiler:
    """Of one fake(): what was compiled, and what of it is running."""

    def __init__(self, device):
        self.device = device
        self.launches, self.frames, self.roots = [], [], []
        self.launch = None  # the next one
        self.compiled = False  # has anything been?
        self.hidden = []  # hooks of all modules, while compiled code runs
        self.inputs = None  # (module, hook of its inputs, handle where that is in place)

    # ---- compiling ----

    def expect(self, nodes):
        from .compiled_kernels import Launch
        self.launches.append(Launch(nodes, self.frames[-1]))
        return len(self.launches) - 1

    @contextlib.contextmanager
    def converting(self, frame):
        """While Dynamo compiles a frame: nothing of what it runs is the program's."""
        from . import compiled_device, compiled_trace, fake_device
        from .compiled_kernels import Frame
        self.frames.append(Frame(frame, self.root()))
        self.compiled = True
        recorder, self.device.recorder = self.device.recorder, None
        try:
            with _no_modes(), compiled_device.compiling(self), \
                    compiled_trace.tracing(self.device.apply_code, fake_device.WRAPPERS):
                yield
        finally:
            self.device.recorder = recorder
            self.frames.pop()

    # ---- running ----

    def root(self):
        """The module that was called, whose compiled code is running; None where a function was."""
        return self.roots[-1] if self.roots else None

    def watch_inputs(self, module, hook):
        """`hook(module, inputs, named)` when `module` is called, compiled or not; None for none."""
        if self.inputs is not None and self.inputs[2] is not None:
            self.inputs[2].remove()
        self.inputs = None if hook is None else (module, hook, self._hooked(module, hook))

    @staticmethod
    def _hooked(module, hook):
        return module.register_forward_pre_hook(hook, with_kwargs=True, prepend=True)

    def enter(self, function, inputs=(), named=None):
        """Compiled code calls no hooks of all modules, and one of the module itself would be compiled with it."""
        if not hasattr(function, "__self__") and not isinstance(function, torch.nn.Module):
            function = getattr(function, "__wrapped__", function)  # of torch, around modules of torch
        module = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
        inner = getattr(module, "_orig_mod", module)
        self.roots.append(inner if isinstance(inner, torch.nn.Module) else None)
        kinds = torch.nn.modules.module
        self.hidden.append([dict(hooks) for hooks in (kinds._global_forward_pre_hooks, kinds._global_forward_hooks)])
        kinds._global_forward_pre_hooks.clear()
        kinds._global_forward_hooks.clear()
        if self.inputs is not None:
            watched, hook, handle = self.inputs
            if handle is not None:
                handle.remove()
                self.inputs = (watched, hook, None)
            if watched in (self.roots[-1], getattr(self.roots[-1], "module", None)):  # that of DistributedDataParallel
                hook(watched, inputs, named or {})

    def leave(self):
        if not self.roots:
            return
        self.roots.pop()
        kinds = torch.nn.modules.module
        before, behind = self.hidden.pop()
        kinds._global_forward_pre_hooks.update(before)
        kinds._global_forward_hooks.update(behind)
        if self.inputs is not None and not self.roots:
            module, hook, _ = self.inputs
            self.inputs = (module, hook, self._hooked(module, hook))

    def at(self, number):
        self.launch = self.launches[number]
        if self.device.recorder is not None:
            self.device.recorder.compiled.next(self.launch, self.root())

    def forget(self):
        """What was compiled here runs nowhere else."""
        if self.compiled:
            torch._dynamo.reset()

    @contextlib.contextmanager
    def undispatched(self):
        recorder = self.device.recorder
        calls = recorder.calls if recorder is not None else 0
        yield
        if recorder is not None:
            recorder.calls = calls

    def launched(self, kernel, reads, writes):
        if self.device.recorder is not None:
            self.device.recorder.compiled.kernel(kernel, reads, writes)


@contextlib.contextmanager
def _no_modes():
    """Modes of functions too, which _disable_current_modes leaves; the program's own are compiled."""
    pop, push = torch._C._pop_torch_function_stack, torch._C._push_on_torch_function_stack
    modes = [pop() for _ in range(torch._C._len_torch_function_stack())][::-1]
    theirs = [mode for mode in modes if not type(mode).__module__.startswith(__package__)]
    for mode in theirs:
        push(mode)
    try:
        with _disable_current_modes():
            yield
    finally:
        for _ in theirs:
            pop()
        for mode in modes:
            push(mode)


def _same_modes(builder, _guard):
    """Compiled code would be compiled anew wherever the modes of functions are others than when it was: this package's
    are there when it runs and not when it is compiled."""
    builder.check_fn_manager.torch_function_mode_stack_check_fn = lambda: True


def _refuse_modes(compile_fx):
    def checked(*args, **kwargs):
        import torch._inductor.config as config
        asked = {**{name: config.get_config_copy().get(name) for name in MODES}, **(kwargs.get("config_patches") or {})}
        for name, said in MODES.items():
            if asked.get(name):
                raise CaptureError(f"torch.compile with {said} is not implemented on fake tensors. {INSTEAD}")
        return compile_fx(*args, **kwargs)
    return checked


def patch_all(device, patch):
    """Makes torch.compile work on the imaginary device."""
    if version() < OLDEST:
        return None
    import torch._dynamo.convert_frame as convert_frame
    import torch._dynamo.guards as guards
    import torch._dynamo.trace_rules as trace_rules
    import torch._functorch._aot_autograd.utils as saved_tensors
    import torch._inductor.compile_fx as compile_fx
    compiler = Compiler(device)
    patch(trace_rules, "SKIP_DIRS_RE", trace_rules.SKIP_DIRS_RE)
    patch(trace_rules, "SKIP_DIRS", [*trace_rules.SKIP_DIRS, OWN])
    trace_rules._recompile_re()
    _watch_calls(patch, compiler.enter, compiler.leave)
    convert = convert_frame.CatchErrorsWrapper.__call__

    def converted(wrapper, frame, *args, **kwargs):
        if frame.f_code.co_filename.startswith(OWN):  # torch skips it
            return convert(wrapper, frame, *args, **kwargs)
        try:
            with compiler.converting(frame):
                return convert(wrapper, frame, *args, **kwargs)
        except (torch._dynamo.exc.BackendCompilerFailed, torch._dynamo.exc.InternalTorchDynamoError) as error:
            inner = getattr(error, "inner_exception", None) or error.__cause__ or error
            if isinstance(inner, CaptureError):
                raise inner from None
            if "NVIDIA driver" in str(inner):
                raise CaptureError(
                    "the step compiles its optimizer, or a function that calls more than the model (backward, the "
                    "optimizer's step): tracing that makes tensors on a device, which is not there. Not implemented on fake "
                    f"tensors. Compile the model alone. {INSTEAD}") from error
            raise CaptureError(f"torch.compile failed on fake tensors ({type(inner).__name__}: "
                               f"{str(inner).strip().splitlines()[0]}). {INSTEAD}") from error

    patch(convert_frame.CatchErrorsWrapper, "__call__", converted)
    patch(guards.GuardBuilder, "TORCH_FUNCTION_STATE", _same_modes)
    for name in ASK_FOR_MODES:
        if hasattr(convert_frame, name):
            patch(convert_frame, name, lambda *_args, **_kwargs: False)
    patch(compile_fx, "compile_fx", _refuse_modes(compile_fx.compile_fx))
    # Hooks of saved tensors are heeded when the program runs, and are no part of it.
    patch(saved_tensors, "saved_tensors_hooks_are_inlineable", lambda _hooks: False)
    patch(torch.nn.modules.module, "_has_any_global_hook", lambda: False)
    return compiler
