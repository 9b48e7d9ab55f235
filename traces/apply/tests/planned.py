"""Steps of a small model on fake CUDA tensors, planned by memwall: the program that MEMWALL_PROGRAM names."""

import functools
import os
import subprocess
import sys
import tempfile
import warnings

import pytest
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "capture")]

from programs import Gpt, ResNet  # noqa: E402

import memwall_apply  # noqa: E402
import memwall_capture  # noqa: E402

PROGRAM = os.environ.get("MEMWALL_PROGRAM")
needs_memwall = pytest.mark.skipif(not PROGRAM, reason="MEMWALL_PROGRAM does not name the program memwall, which makes the plans")
FOLDER = tempfile.TemporaryDirectory()
MODELS = {"gpt": functools.partial(Gpt, width=256, layers=4, vocabulary=512, dropout=0.1), "resnet": functools.partial(ResNet, 64, cumulative=False)}


def batch(name):
    if name == "gpt":
        return torch.randint(0, 512, (8, 64), device="cuda"), torch.randint(0, 512, (8, 64), device="cuda")
    return torch.randn(8, 3, 32, 32, device="cuda"), torch.randint(0, 10, (8,), device="cuda")


def capture(name, path, plan=None, change=lambda applied: None):
    """The second step. `change`: of what has been applied, before anything runs."""
    with memwall_capture.fake(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # hooks around selective checkpointing: the recorder's
        with torch.device("cuda"):
            model = MODELS[name]()
        optimizer = torch.optim.AdamW(model.parameters())
        applied = memwall_apply.apply(model, plan, optimizer) if plan else None
        change(applied)
        inputs = batch(name)

        def step():
            model(*inputs).backward()
            optimizer.step()
            optimizer.zero_grad()

        step()
        with memwall_capture.step(path, model=model, optimizer=optimizer, name=name):
            step()
    return path


@functools.lru_cache(None)
def plan_for(name, policies):
    """Of memwall, for the unplanned step; `policies` with spaces between."""
    base = os.path.join(FOLDER.name, name + ".mwc.gz")
    if not os.path.exists(base):
        capture(name, base)
    path = os.path.join(FOLDER.name, f"{len(os.listdir(FOLDER.name))}.plan")
    command = [PROGRAM, "run", base, "--machine", "h100-sxm-80gb", "--plan-out", path, "--executable=torch"]
    for policy in policies.split():
        command += ["--policy", policy]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    return memwall_apply.load(path)


def planned_capture(name, policies, change=lambda applied: None):
    return capture(name, os.path.join(FOLDER.name, "planned.mwc.gz"), plan_for(name, policies), change)
