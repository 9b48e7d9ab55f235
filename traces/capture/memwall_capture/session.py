"""One recorded step: puts the hooks in place, takes them away, names what was seen, writes the file."""

import contextlib
import gc
import itertools
import os
import platform

import torch
from torch.profiler import record_function
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from . import compiled, file, hooks, measure, real_cuda
from . import profile as kineto
from .errors import CaptureError
from .lines import Lines
from .names import ModuleNames
from .recorder import Recorder
from .storages import Storages, gradient_of, plain_tensors
from .timing import Timing

ITEM = torch.ops.aten._local_scalar_dense.default
UNNAMED = "parameter"


class CaptureMode(TorchDispatchMode):
    """Passes every operator on, and shows it to the recorder while there is one."""

    def __init__(self, device="cuda"):
        super().__init__()
        self.storages = Storages(device)
        self.recorder = None
        self.marks = None  # numbers of operators, while a profiler is running

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(_desugars(t) for t in types):
            return NotImplemented  # a wrapper (DTensor): its own operators come here in turn
        if self.recorder is None:
            return func(*args, **kwargs)
        mark = None if self.marks is None else next(self.marks)
        with contextlib.nullcontext() if mark is None else record_function(f"{kineto.MARK}{mark}"):
            out = func(*args, **kwargs)
        self.recorder.mark = mark
        if func is ITEM:
            self.recorder.item(args[0])
        self.recorder.operator(func, args, kwargs, out)
        return out


def _desugars(kind):
    return hasattr(kind, "__tensor_flatten__") and kind is not torch.Tensor


def installed_mode():
    """The mode of an enclosing fake(), or None."""
    for mode in reversed(_get_current_dispatch_mode_stack()):
        if isinstance(mode, CaptureMode):
            return mode
    return None


class Session:
    """`start` and `finish` around what is recorded. The mode must be installed already."""

    def __init__(self, path, mode, model=None, optimizer=None, name=None, samples=None, tokens=None, times=None):
        self.path, self.mode, self.model, self.optimizer = os.fspath(path), mode, model, optimizer
        self.name = name or os.path.basename(self.path).split(".")[0]
        self.samples, self.tokens = samples, tokens
        self.optimizers = [] if optimizer is None else [optimizer]
        self.times = times  # of the same step, run before: measure.StepTimes
        self.profiler, self.timing = None, []
        self.stack = contextlib.ExitStack()
        self.labels = {}

    def start(self):
        if self.mode.recorder is not None:
            raise CaptureError("a step is being recorded already; expected one at a time.")
        compiled.refuse(self.model, self.fake)
        folder = os.path.dirname(os.path.abspath(self.path))
        if not os.path.isdir(folder):  # not after a long step
            raise CaptureError(f"{self.path}: there is no folder {folder}; make it first.")
        storages = self.mode.storages
        self._name_parameters()
        if not self.fake:
            self._know_what_lives(storages)
        # Unreachable cycles would be freed whenever the collector happens to run.
        gc.collect()
        if gc.isenabled():
            gc.disable()
            self.stack.callback(gc.enable)
        self.names = self.stack.enter_context(ModuleNames(self.model))
        self.recorder = Recorder(storages, self.names, self.name)
        self.names.on_enter = self.recorder.module_entered
        self._hook_autograd()
        self._hook_optimizers()
        if self.model is not None:
            self.stack.callback(compiled.watch_inputs(self.mode, self.model, self._given))
        compiled.refuse_calls(self._patch, self.fake)
        if not self.fake:
            self._start_profiler()
        self.mode.recorder = self.recorder
        return self

    def _start_profiler(self):
        storages = self.mode.storages
        if storages.device == "cuda":
            streams = real_cuda.Streams()
            storages.stream = streams.current
            self.stack.enter_context(real_cuda.watched(self.recorder, streams))
        self.mode.marks = itertools.count()
        self.stack.callback(setattr, self.mode, "marks", None)
        self.profiler = self.stack.enter_context(measure.profiler(storages.device))
        self.stack.enter_context(record_function(kineto.STEP))

    @property
    def fake(self):
        return getattr(self.mode, "fake", False)

    def _know_what_lives(self, storages):
        for thing in gc.get_objects():
            if type(thing) in (torch.Tensor, torch.nn.Parameter) and storages.on_device(thing):
                storages.of(thing)

    def _name_parameters(self):
        """Kinds and labels of what the model and the optimizer hold."""
        storages = self.mode.storages
        if self.model is not None:
            for group in (self.model.named_parameters(), self.model.named_buffers()):
                for name, tensor in group:
                    name = compiled.plain_name(name)
                    for plain in plain_tensors(tensor):
                        self._is(storages.of(plain), "parameter", name)
                        self.labels[id(tensor)] = name
        for optimizer in self.optimizers:
            self._name_state(optimizer)
        self._name_gradients()

    @staticmethod
    def _is(storage, kind, label):
        if storage.kind in (None, "communication_buffer") or kind == "gradient":
            storage.kind, storage.label = kind, label
        elif storage.kind == kind and storage.label.split(".")[0] == UNNAMED:
            storage.label = label

    def _parameters(self):
        seen = {}
        if self.model is not None:
            for name, p in self.model.named_parameters():
                seen.setdefault(id(p), (compiled.plain_name(name), p))
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    seen.setdefault(id(p), (self.labels.get(id(p), UNNAMED), p))
        return list(seen.values())

    def _name_state(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                label = self.labels.get(id(p), UNNAMED)
                for plain in plain_tensors(p):
                    self._is(self.mode.storages.of(plain), "parameter", label)
                for key, value in optimizer.state.get(p, {}).items():
                    for plain in plain_tensors(value):
                        self._is(self.mode.storages.of(plain), "optimizer_state", f"{label}.{key}")

    def _name_gradients(self):
        for name, p in self._parameters():
            if gradient_of(p) is not None:
                for plain in plain_tensors(gradient_of(p)):
                    storage = self.mode.storages.of(plain)
                    if storage.kind not in ("parameter", "optimizer_state"):
                        self._is(storage, "gradient", name + ".grad")

    # ---- hooks ----

    def _patch(self, owner, name, value):
        """Until the step ends."""
        own = name in vars(owner)
        original = vars(owner)[name] if own else None
        setattr(owner, name, value)
        if own:
            self.stack.callback(setattr, owner, name, original)
        else:
            self.stack.callback(delattr, owner, name)

    def _hook_autograd(self):
        recorder, session = self.recorder, self
        hooks.watch(recorder.reruns, self._patch)
        # Only the innermost hooks are asked: those that the program has around the step go on.
        pair = hooks.outer_hooks() or (recorder.pack, lambda packed: packed)
        self.stack.enter_context(torch.autograd.graph.saved_tensors_hooks(*pair))
        original = torch.autograd.backward

        def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, *args, **kwargs):
            nested = recorder.in_backward
            recorder.begin_backward(create_graph)
            try:
                return original(tensors, grad_tensors, retain_graph, create_graph, *args, **kwargs)
            finally:
                recorder.in_backward = nested
                session._name_gradients()

        torch.autograd.backward = backward
        self.stack.callback(setattr, torch.autograd, "backward", original)
        entered = torch.autocast.__enter__

        def enter(context):
            if context._enabled and context.device == "cuda":
                from .operators import dtype_name
                recorder.autocast.add(dtype_name(context.fast_dtype))
            return entered(context)

        torch.autocast.__enter__ = enter
        self.stack.callback(setattr, torch.autocast, "__enter__", entered)
        self._hook_cast_cache()
        for _, p in self._parameters():
            if p.requires_grad and p.is_leaf:
                self.stack.callback(p.register_post_accumulate_grad_hook(self._accumulated).remove)

    def _hook_cast_cache(self):
        """The casts of parameters that autocast keeps are dropped in the order of their addresses, which differs from
        run to run; they are recorded in the order in which they were made."""
        original = torch.clear_autocast_cache

        def clear_autocast_cache():
            with self.recorder.sorted_frees():
                original()

        torch.clear_autocast_cache = clear_autocast_cache
        self.stack.callback(setattr, torch, "clear_autocast_cache", original)

    def _accumulated(self, p):
        if gradient_of(p) is not None:
            for plain in plain_tensors(gradient_of(p)):
                self._is(self.mode.storages.of(plain), "gradient", self.labels.get(id(p), UNNAMED) + ".grad")

    def _given(self, _model, inputs, named):
        """What the model is called with is input, also where the step made it on the device itself."""
        for tensor in plain_tensors([inputs, named]):
            storage = self.mode.storages.of(tensor)
            if storage.kind is None and not tensor.requires_grad:
                storage.kind = "input"

    def _hook_optimizers(self):
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        def before(optimizer, _args, _kwargs):
            if optimizer not in self.optimizers:
                self.optimizers.append(optimizer)
            self._name_gradients()
            self.recorder.in_optimizer = True

        def after(optimizer, _args, _kwargs):
            self.recorder.in_optimizer, self.recorder.after_optimizer = False, True
            self._name_state(optimizer)

        self.stack.callback(register_optimizer_step_pre_hook(before).remove)
        self.stack.callback(register_optimizer_step_post_hook(after).remove)

    # ---- the end ----

    def finish(self, failed=False):
        self.mode.recorder = None
        self.recorder.stop()
        self.stack.close()
        if failed:
            return
        if self.model is None and self.names.modules:
            self.model = self.names.modules[0]
        self._name_parameters()
        self._join_times()
        lines = Lines(self.recorder)
        body = lines.all()
        file.write(self.path, self._header(lines.left_out), body)

    def _join_times(self):
        if self.profiler is None:
            return
        timed = None if self.times is None else self.times.profile
        timing = Timing(self.recorder.records, kineto.read(self.profiler), timed,
                        0.0 if self.times is None else self.times.overhead()).join()
        if timed is None:
            self.timing = ["not implemented: host times of a step that runs once; the recorder makes the host slow. "
                           "memwall_capture.record runs it several times and measures them."]
        else:
            self.timing = self.times.sentences()
        self.timing += timing.notes

    def _header(self, left_out):
        from . import __version__
        r = self.recorder
        attention = "/".join(sorted(r.attention))
        choices = {"attention": attention} if attention else {}
        for kind, word in (("fused", "fused"), ("foreach", "foreach"), ("other", "for-loop")):
            if kind in r.optimizer_kind:
                choices["optimizer"] = word
                break
        if r.autocast:
            choices["autocast"] = "/".join(sorted(r.autocast))
        header = {"format": "memwall-capture", "version": 1, "name": self.name,
                  "mode": "fake" if self.fake else "real", "device": self.mode.storages.device,
                  "program": {"torch": torch.__version__, "python": platform.python_version(),
                              "memwall_capture": __version__}, "choices": choices}
        if self.samples:
            header["samples_per_step"] = self.samples
        if self.tokens:
            header["tokens_per_step"] = self.tokens
        if not self.fake and self.mode.storages.device == "cuda":
            properties = torch.cuda.get_device_properties(torch.cuda.current_device())
            header["gpu"], header["gpu_bytes"] = properties.name, properties.total_memory
        header["notes"] = self._notes(left_out)
        return header

    def _notes(self, left_out):
        r = self.recorder
        notes = ["Scratch memory inside kernels (cuBLAS and cuDNN workspaces, temporaries of one operator) is not "
                 "recorded."]
        if self.fake:
            notes.append("Work on other streams by libraries without Python calls is not seen; autograd's host thread "
                         "is recorded as the calling one.")
            if r.sync_values:
                notes.append(f"{r.sync_values} values were read back by the host (.item()); 0 was answered.")
        else:
            notes += self.timing
        if left_out:
            notes.append(f"Left out: {left_out} operator{'' if left_out == 1 else 's'} on host tensors of which nothing "
                         "reaches the device.")
        if not any(s.kind == "parameter" for s in r.preexisting):
            notes.append("No model was named and none was called: parameters could not be told from inputs.")
        return notes + r.notes


@contextlib.contextmanager
def step(path, model=None, optimizer=None, *, mode=None, name=None, samples_per_step=None, tokens_per_step=None):
    """Records what runs inside into the file `path` (compressed if it ends with .gz).

    Inside of fake() nothing is computed; elsewhere a CUDA device is needed, and durations on the device are measured
    (`record` measures the host's times too). `mode`: "fake" or "real" insists on the one or the other. Raises
    CaptureError where neither is there, where the model is compiled, and where an operator's result would decide shapes.
    """
    with _mode(mode) as installed:
        session = Session(path, installed, model, optimizer, name, samples_per_step, tokens_per_step).start()
        try:
            yield session
        except BaseException:
            session.finish(failed=True)
            raise
        session.finish()


def record(path, function, model=None, optimizer=None, *, warmup=2, repeats=3, name=None, samples_per_step=None,
           tokens_per_step=None, device="cuda"):
    """Records one call of `function`, a whole training step, after `warmup` others.

    On a CUDA device it is called 3 + `repeats` times more: `repeats` times as it is and twice with the profiler, to
    measure the host's times and what the profiler costs, and once with the recorder. Each call must do the same. With
    `device="cpu"` what runs on the CPU is taken for the device's; nothing is measured of it but the host's side.
    """
    for _ in range(warmup):
        function()
    times = None
    if installed_mode() is None and (device == "cpu" or torch.cuda.is_available()):
        times = measure.StepTimes(device)
        for _ in range(repeats):
            with times.without_profiler():
                function()
        for _ in range(2):  # its first run is slower than those that follow
            with times.with_profiler():
                function()
    with _mode(None, device) as installed:
        session = Session(path, installed, model, optimizer, name, samples_per_step, tokens_per_step, times).start()
        try:
            function()
        except BaseException:
            session.finish(failed=True)
            raise
        session.finish()


@contextlib.contextmanager
def _mode(wanted, device="cuda"):
    """The mode of an enclosing fake(), else one of its own."""
    mode = installed_mode()
    if wanted not in (None, "fake", "real"):
        raise CaptureError(f"mode is {wanted!r}; expected \"fake\" or \"real\".")
    if wanted is not None and (wanted == "fake") != (mode is not None):
        raise CaptureError(f"mode is {wanted!r}, but the step runs {'inside' if mode is not None else 'outside'} of "
                           "memwall_capture.fake().")
    if mode is not None:
        yield mode
        return
    if device == "cuda" and not torch.cuda.is_available():
        raise CaptureError("there is no CUDA device; build the model and run the step inside of "
                           "`with memwall_capture.fake():`.")
    with CaptureMode(device) as mode:
        yield mode
