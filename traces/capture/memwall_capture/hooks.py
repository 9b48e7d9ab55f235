"""Where PyTorch keeps what backward needs: tells the recorder when a checkpointed unit runs, and when it runs again, and
when a hook is asked for a tensor that it has packed."""

import functools

import torch
import torch.utils.checkpoint

from .reruns import Unit

UNIT = "memwall_unit"


def watch(reruns, patch):
    """`patch(owner, name, value)` replaces until the step ends."""
    _watch_unpacking(reruns, patch)
    _watch_checkpoints(reruns, patch)
    _watch_reentrant(reruns, patch)


def _watch_unpacking(reruns, patch):
    push = torch._C._autograd._push_saved_tensors_default_hooks

    def watched(pack, unpack):
        @functools.wraps(unpack)
        def asked(packed):
            if not reruns.unpacking:
                reruns.last_place = None
            reruns.unpacking += 1
            try:
                return unpack(packed)
            finally:
                reruns.unpacking -= 1

        push(pack, asked)

    patch(torch._C._autograd, "_push_saved_tensors_default_hooks", watched)


def outer_hooks():
    """The pair that tensors saved now go to, or None."""
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return None if top is None else top(False)


def _watch_checkpoints(reruns, patch):
    """Without reentrance: a frame is made, a hook with this frame is entered while the unit runs, and the frame's
    `recompute_fn` runs it again."""
    frame_type = getattr(torch.utils.checkpoint, "_CheckpointFrame", None)
    hook_type = getattr(torch.utils.checkpoint, "_checkpoint_hook", None)
    if frame_type is None or hook_type is None:
        return
    make_frame, make_hook, enter, leave = (frame_type.__init__, hook_type.__init__, hook_type.__enter__,
                                           hook_type.__exit__)

    def frame_init(frame, recompute_fn, *args, **kwargs):
        unit = Unit()
        setattr(frame, UNIT, unit)
        make_frame(frame, functools.partial(reruns.run, unit, recompute_fn), *args, **kwargs)

    def hook_init(hook, frame):
        make_hook(hook, frame)
        setattr(hook, UNIT, getattr(frame, UNIT, None))

    def hook_enter(hook):
        if getattr(hook, UNIT, None) is not None:
            reruns.open.append(getattr(hook, UNIT))
        return enter(hook)

    def hook_exit(hook, *error):
        unit = getattr(hook, UNIT, None)
        if unit in reruns.open:
            reruns.open.remove(unit)
        return leave(hook, *error)

    patch(frame_type, "__init__", frame_init)
    patch(hook_type, "__init__", hook_init)
    patch(hook_type, "__enter__", hook_enter)
    patch(hook_type, "__exit__", hook_exit)


class _Reentrant:
    """The function under a reentrant checkpoint: called once in forward, then once more for every backward."""

    def __init__(self, reruns, function):
        self.reruns, self.function, self.unit = reruns, function, None

    def __call__(self, *args):
        if self.unit is not None:
            return self.reruns.run(self.unit, self.function, *args)
        self.unit = Unit()
        self.reruns.open.append(self.unit)
        try:
            return self.function(*args)
        finally:
            self.reruns.open.remove(self.unit)


def _watch_reentrant(reruns, patch):
    kind = torch.utils.checkpoint.CheckpointFunction
    original = kind.forward

    def forward(ctx, run_function, *args):
        return original(ctx, _Reentrant(reruns, run_function), *args)

    patch(kind, "forward", staticmethod(forward))
