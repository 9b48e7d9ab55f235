"""Compiled code (torch.compile) is refused: on the device its kernels bypass what is recorded here, on fake tensors it would
run as if it were not compiled."""

import sys

import torch
import torch._dynamo.eval_frame as eval_frame

from .errors import CaptureError

COMPILED = ("the step runs compiled code (torch.compile), whose kernels bypass what is recorded here; without a device it "
            "would be recorded as if it were not compiled. Not implemented; capture the model without torch.compile.")


def refuse(model):
    """Before the step: a model that is compiled."""
    if torch.compiler.is_compiling() or (model is not None and any(
            type(m).__name__ == "OptimizedModule" or getattr(m, "_compiled_call_impl", None) is not None
            for m in model.modules())):
        raise CaptureError(COMPILED)


def refuse_calls(patch):
    """In the step: what torch.compile has wrapped sets the frame evaluator when it is called, and runs as it is under a
    mode."""
    def refusing(original):
        def set_eval_frame(*args):
            frame = sys._getframe(1)
            for _ in range(2):
                if frame is not None and isinstance(frame.f_locals.get("self"), eval_frame.OptimizeContext):
                    raise CaptureError(COMPILED)
                frame = frame.f_back if frame is not None else None
            return original(*args)
        return set_eval_frame

    for name in ("set_eval_frame", "_maybe_set_eval_frame"):  # by version
        original = getattr(eval_frame, name, None)
        if original is not None:
            patch(eval_frame, name, refusing(original))
