"""Records a training step as memwall wants it: kernels, calls, memory and shapes on one clock."""

import contextlib
import gzip
import os
import shutil
import tempfile

import torch

from .errors import ApplyError


@contextlib.contextmanager
def profile(folder):
    """Around one or more training steps on a GPU, the first of which has already run. Yields a function to call behind each
    step. Writes into `folder`: `kineto.json.gz` (PyTorch's profiler with memory events, shapes, modules), `et.json.gz`
    (the ExecutionTrace of the same steps, which adds dataflow) and, where there is a GPU, `snapshot.pickle.gz` (the
    allocator's history): `memwall run FOLDER/kineto.json.gz --et FOLDER/et.json.gz`, `memwall memory FOLDER/snapshot.pickle.gz`."""
    folder = os.fspath(folder)
    os.makedirs(folder, exist_ok=True)
    gpu = torch.cuda.is_available()
    activities = [torch.profiler.ProfilerActivity.CPU] + ([torch.profiler.ProfilerActivity.CUDA] if gpu else [])
    steps = []
    with tempfile.TemporaryDirectory() as scratch:
        observer = torch.profiler.ExecutionTraceObserver()
        observer.register_callback(os.path.join(scratch, "et.json"))
        if gpu:
            torch.cuda.memory._record_memory_history(max_entries=1_000_000)
        profiler = torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True, with_stack=True,
                                          with_modules=True, execution_trace_observer=observer)
        try:
            with profiler:
                mark = contextlib.ExitStack()
                mark.enter_context(torch.profiler.record_function("ProfilerStep#0"))

                def step():
                    if gpu:
                        torch.cuda.synchronize()
                    steps.append(None)
                    mark.close()
                    mark.enter_context(torch.profiler.record_function(f"ProfilerStep#{len(steps)}"))

                yield step
                mark.close()
            if gpu:
                torch.cuda.memory._dump_snapshot(os.path.join(scratch, "snapshot.pickle"))
        finally:
            observer.unregister_callback()
            if gpu:
                torch.cuda.memory._record_memory_history(enabled=None)
        if not steps:
            raise ApplyError("Nothing was recorded: expected a call of what profile() yields behind each step.")
        profiler.export_chrome_trace(os.path.join(scratch, "kineto.json"))
        for name in sorted(os.listdir(scratch)):
            _compress(os.path.join(scratch, name), os.path.join(folder, name + ".gz"))


def _compress(source, target):
    with open(source, "rb") as plain, gzip.GzipFile(target + ".partial", "wb", mtime=0) as packed:
        shutil.copyfileobj(plain, packed)
    os.replace(target + ".partial", target)
