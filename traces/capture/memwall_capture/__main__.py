"""Records one step of a training script as it is.

    python -m memwall_capture [--out FILE] [--step N] [--samples N] [--tokens N] [--real] train.py ARGUMENTS...
    python -m memwall_capture [...] package.module:function

The program runs on the imaginary device (with --real: on the GPU) until its optimizer has stepped N times (2 by
default: the first step makes the optimizer's state). What happens between the end of step N - 1 and the end of step N
is recorded; then the program is stopped. With --real, N is 6 by default: the step from N - 4 on is timed as it is, the
two behind it with the profiler, so that the host's times are measured too.
"""

import argparse
import contextlib
import importlib
import os
import runpy
import sys

import torch

from . import CaptureError, fake
from .measure import StepTimes
from .session import CaptureMode, Session


class Recorded(BaseException):
    """The step is written: the program need not go on. No program catches this by accident."""


class StepWatch:
    """Starts and ends the recording at optimizer steps. `mode`: that of fake(), or None for a real device."""

    MEASURED = 3  # steps before the recorded one: one as it is, two with the profiler, the first of which is slower

    def __init__(self, path, mode, number, device="cuda", samples=None, tokens=None):
        self.path, self.mode, self.number, self.seen, self.device = path, mode, number, 0, device
        self.samples, self.tokens = samples, tokens
        self.session = None
        self.times = StepTimes(device) if mode is None and number > self.MEASURED else None
        self.stack = contextlib.ExitStack()  # of what runs between two steps
        self._between(None)

    def _between(self, optimizer):
        """What is done from here to the next step."""
        left = self.number - self.seen
        if left == 1:
            if self.mode is None:
                self.mode = self.stack.enter_context(CaptureMode(self.device))
            name = os.path.basename(self.path).split(".")[0]
            self.session = Session(self.path, self.mode, None, optimizer, name, self.samples, self.tokens,
                                   self.times).start()
        elif self.times is not None and left <= self.MEASURED + 1:
            times = self.times
            self.stack.enter_context(times.without_profiler() if left > self.MEASURED else times.with_profiler())

    def after_step(self, optimizer, _args, _kwargs):
        self.seen += 1
        if self.seen == self.number:
            self.session.finish()
            self.stack.close()
            raise Recorded
        self.stack.close()
        self._between(optimizer)


def parse():
    parser = argparse.ArgumentParser(prog="python -m memwall_capture", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="step.mwc.gz", help="file to write (default: step.mwc.gz)")
    parser.add_argument("--step", type=int, help="which step of the optimizer to record (default: 2; with --real 6)")
    parser.add_argument("--samples", type=int, help="samples of the step: `memwall run --policy batch:N` starts from it")
    parser.add_argument("--tokens", type=int, help="tokens of the step, all samples together")
    parser.add_argument("--real", action="store_true", help="run on the GPU instead of the imaginary device")
    parser.add_argument("program", help="script.py, or module:function")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.step is None:
        arguments.step = 6 if arguments.real else 2
    if arguments.step < 1:
        parser.error(f"--step is {arguments.step}; expected 1 or more")
    for name in ("samples", "tokens"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            parser.error(f"--{name} is {getattr(arguments, name)}; expected 1 or more")
    if not os.path.isdir(os.path.dirname(os.path.abspath(arguments.out))):
        parser.error(f"--out {arguments.out}: there is no such folder to write into")
    return arguments


def run(program, arguments):
    sys.argv = [program, *arguments]
    if os.path.exists(program):
        sys.path[0] = os.path.dirname(os.path.abspath(program))
        runpy.run_path(program, run_name="__main__")
        return
    module, colon, function = program.partition(":")
    if not colon:
        raise CaptureError(f"{program}: there is no such file; expected a script or module:function.")
    sys.path[0] = os.getcwd()
    getattr(importlib.import_module(module), function)()


def main():
    arguments = parse()
    from torch.optim.optimizer import register_optimizer_step_post_hook
    try:
        with contextlib.ExitStack() as stack:
            if arguments.real and not torch.cuda.is_available():
                raise CaptureError("--real needs a CUDA device; there is none.")
            mode = None if arguments.real else stack.enter_context(fake())
            watch = StepWatch(arguments.out, mode, arguments.step, samples=arguments.samples, tokens=arguments.tokens)
            stack.callback(register_optimizer_step_post_hook(watch.after_step).remove)
            run(arguments.program, arguments.arguments)
            raise CaptureError(f"the program ended after {watch.seen} steps of an optimizer; expected "
                               f"{arguments.step}. --step says which to record.")
    except Recorded:
        print(f"Wrote {arguments.out}.")
        return 0
    except CaptureError as error:
        print(f"memwall_capture: {error}", file=sys.stderr)
        return 6


if __name__ == "__main__":
    sys.exit(main())
