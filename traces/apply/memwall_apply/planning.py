"""The way to a plan and around it: memwall is asked for one; a step is recorded with or without it."""

import os
import re
import shutil
import subprocess

from .applied import apply
from .errors import ApplyError
from .memory_plan import load

OVER_BUDGET = 3  # memwall's exit code


def plan(capture, *policies, machine, out=None, program="memwall"):
    """The plan that memwall makes for a captured step: `policies` as `memwall run --policy` takes them, restricted to
    what PyTorch can do; `machine`: a name or a file. It is written to `out` (default: beside the capture) and loaded.
    Raises ApplyError with memwall's own words where there is no such plan, or none that keeps to the budget."""
    capture = os.fspath(capture)
    out = os.fspath(out) if out else capture.split(".mwc")[0] + ".plan"
    found = shutil.which(program)
    if found is None:
        raise ApplyError(f"There is no program {program} here; expected memwall in PATH, or program= with where it is.")
    command = [found, "run", capture, "--machine", os.fspath(machine), "--executable=torch", "--plan-out", out]
    for policy in policies:
        command += ["--policy", policy]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == OVER_BUDGET:
        raise ApplyError(f"No plan of {' '.join(policies)} keeps to its budget. {_on_the_budget(done.stdout)} The best one is "
                         f"in {out}.")
    if done.returncode != 0:
        raise ApplyError(f"memwall makes no plan of {' '.join(policies)}: {' '.join(done.stderr.split())}")
    return load(out)


def _on_the_budget(report):
    """Of memwall's answer the sentence about the budget."""
    answer = " ".join(line.strip() for line in report.splitlines() if line.startswith("  "))
    found = re.search(r"Over the budget: .*?\.(?= [A-Z]|$)", answer)
    return found[0] if found else answer


def record(path, build, plan=None):
    """Records a training step on fake tensors, with the plan applied if there is one; needs memwall_capture, and no GPU.

    `build()` returns (model, optimizer, step): the model on "cuda", and a function without arguments that trains it once.
    The first step makes the optimizer's states; the second is recorded. Returns what carried out the plan, or None."""
    try:
        import memwall_capture
    except ImportError as e:
        raise ApplyError("memwall_capture is not installed; expected `pip install traces/capture`, which records steps.") from e
    with memwall_capture.fake():
        model, optimizer, step = build()
        applied = None if plan is None else apply(model, plan, optimizer)
        step()
        with memwall_capture.step(path, model=model, optimizer=optimizer):
            step()
    return applied
