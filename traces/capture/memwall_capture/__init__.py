"""Captures a PyTorch training step as the program that the host ran, with or without a GPU.

    with memwall_capture.fake():                       # no GPU, no memory: tensors have shapes only
        model = Model().to("cuda"); optimizer = ...
        train_step()                                   # the first one makes the optimizer's state
        with memwall_capture.step("out.mwc.gz", model=model, optimizer=optimizer):
            train_step()

On a machine with a GPU, `step` alone records what really runs, with durations; `record(path, train_step)` runs the
step several times and measures the host's times too. What is written is in FORMAT.md, beside this package.
"""

from .errors import CaptureError
from .fake_device import fake
from .session import record, step

__version__ = "0.1.0"
__all__ = ["CaptureError", "fake", "record", "step", "__version__"]
