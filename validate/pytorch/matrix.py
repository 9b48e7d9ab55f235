#!/usr/bin/env python3
"""Training steps of real models under real settings, measured: what memwall's predictions are compared with.

For each model a baseline (bfloat16 autocast, AdamW) is measured and captured: a profile with memory events, an
ExecutionTrace, a memory snapshot. Each variant is measured only: step time without a profiler, phases, peak
allocated and reserved bytes. Every case runs in a process of its own, so that no cache or setting leaks.

    matrix.py --out DIR --minutes 20            # most valuable cases first; run it again to go on
    matrix.py --list
    matrix.py --out DIR --device cpu --tiny --minutes 2   # does the script work? never a result
    matrix.py --out DIR --machine h200-sxm-141gb --memwall PROGRAM   # plans, too

Variants plan=... are memory plans: the step is captured on fake tensors (traces/capture), memwall plans on it for the
machine, memwall_apply (traces/apply) puts the plan into the model, and what is measured stands beside what the plan
expects (DIR/plans.csv). They need --machine, and memwall in PATH or --memwall.

Writes DIR/results.csv (one row per case, as soon as it is known) and DIR/baseline/MODEL.{kineto.json,et.json,
snapshot.pickle}.gz. A case that ended, well or out of memory, is not run again.
"""

import argparse
import contextlib
import csv
import datetime
import gzip
import io
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

COLUMNS = [
    "model", "variant", "kernels", "batch", "status", "step_seconds", "step_low", "step_high", "steps",
    "forward_seconds", "backward_seconds", "optimizer_seconds", "peak_allocated", "peak_reserved", "samples",
    "date", "gpu", "driver", "torch", "cuda", "note"]
# Of plans.csv: what a plan expects beside what was measured.
PLAN_COLUMNS = [
    "model", "variant", "status", "planned_step_seconds", "step_seconds", "planned_peak_allocated", "peak_allocated",
    "planned_peak_reserved", "peak_reserved", "date", "gpu", "torch", "note"]

# variant -> (settings, are the kernels those of the baseline?). In the order in which they are worth measuring.
VARIANTS = {
    "baseline": ({}, "same"),
    "checkpoint=full": ({"checkpoint": "full"}, "same"),
    "offload=pinned": ({"save_on_cpu": "pinned"}, "same"),
    "optimizer=cpu": ({"optimizer": "cpu"}, "same"),
    "accumulation=2": ({"accumulation": 2}, "same"),
    "checkpoint=every2": ({"checkpoint": "every2"}, "same"),
    "checkpoint=selective": ({"checkpoint": "selective"}, "same"),
    "offload=pageable": ({"save_on_cpu": "pageable"}, "same"),
    "alloc=expandable_segments": ({"alloc_conf": "expandable_segments:True"}, "same"),
    "alloc=max_split_128": ({"alloc_conf": "max_split_size_mb:128"}, "same"),
    "alloc=roundup_4": ({"alloc_conf": "roundup_power2_divisions:4"}, "same"),
    "batch=half": ({"batch": 0.5}, "changed"),
    "dtype=bf16": ({"dtype": "bf16"}, "changed"),
    "dtype=fp32": ({"dtype": "fp32"}, "changed"),
    "batch=double": ({"batch": 2}, "changed"),
    "compile": ({"compile": True}, "changed"),
}
# Of memwall, by its policies; peaks of budgets are shares of the baseline's memory as memwall simulates it.
PLANS = {
    "plan=checkpoint": ["checkpoint:mode=full"],
    "plan=offload": ["offload:what=activations,to=host"],
    "plan=checkpoint_and_offload": ["checkpoint:mode=full", "offload:what=activations,to=host"],
    "plan=optimizer": ["offload:what=optimizer,to=host"],
    "plan=chen": ["chen:mode=sqrt"],
    "plan=vdnn": ["vdnn"],
    "plan=rotor_70": ["rotor:budget={0.7}"],
    "plan=capuchin_70": ["capuchin:budget={0.7}"],
}
VARIANTS.update({name: ({"plan": policies}, "same") for name, policies in PLANS.items()})
# A capture, not a variant: offload, kernels and allocations on one clock.
OFFLOAD_CAPTURE = "capture=offload"


def case_list(models, only):
    """(model, variant), most valuable first: four variants and four plans of every model before the rest of any."""
    names, plans = [v for v in VARIANTS if v not in PLANS], list(PLANS)
    cases = [(m, v) for group in (names[:5], plans[:4], names[5:], plans[4:]) for m in models for v in group]
    cases.insert(min(5, len(cases)), (models[0], OFFLOAD_CAPTURE))
    return [c for c in cases if not only or only in " ".join(c)]


# ---- one case, in its own process ---------------------------------------------------------------------------

class Step:
    """One training step of a model under a variant's settings."""

    def __init__(self, model_name, settings, device):
        import torch
        import models
        self.torch, self.settings, self.device = torch, settings, device
        make, self.inputs, batch = {**models.MODELS, **models.TINY}[model_name]
        self.batch = max(1, int(batch * settings.get("batch", 1)))
        self.dtype = settings.get("dtype", "amp")
        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        self.model = make().to(device)
        if self.dtype == "bf16":
            self.model = self.model.to(torch.bfloat16)
        self.cpu_optimizer = settings.get("optimizer") == "cpu"
        parameters = list(self.model.parameters())
        if self.cpu_optimizer:
            pinned = device == "cuda"
            self.masters = [p.detach().to("cpu", torch.float32, copy=True) for p in parameters]
            self.masters = [m.pin_memory() if pinned else m for m in self.masters]
            for master in self.masters:
                master.grad = torch.empty_like(master, pin_memory=pinned)
            self.optimizer = torch.optim.AdamW(self.masters, lr=1e-4)
        else:
            self.optimizer = torch.optim.AdamW(parameters, lr=1e-4)
        self.parameters = parameters
        if settings.get("apply"):
            settings["apply"](self.model, self.optimizer)
        self.forward = torch.compile(self.model) if settings.get("compile") else self.model
        self.data = self.inputs(self.batch, device)
        if self.dtype == "bf16":
            self.data = tuple(d.to(torch.bfloat16) if d.is_floating_point() else d for d in self.data)

    def saved_tensors(self):
        where = self.settings.get("save_on_cpu")
        if not where:
            return contextlib.nullcontext()
        return self.torch.autograd.graph.save_on_cpu(pin_memory=where == "pinned" and self.device == "cuda")

    def loss(self):
        autocast = self.torch.autocast(self.device, dtype=self.torch.bfloat16, enabled=self.dtype == "amp")
        with autocast, self.saved_tensors():
            return self.forward(self.data, self.settings.get("checkpoint", "none"))

    def optimize(self):
        if not self.cpu_optimizer:
            self.optimizer.step()
            return
        for parameter, master in zip(self.parameters, self.masters):
            master.grad.copy_(parameter.grad, non_blocking=True)
        if self.device == "cuda":
            self.torch.cuda.synchronize()
        self.optimizer.step()
        for parameter, master in zip(self.parameters, self.masters):
            parameter.data.copy_(master, non_blocking=True)

    def __call__(self, mark=lambda _name: None):
        mark("forward")
        for _ in range(self.settings.get("accumulation", 1)):
            loss = self.loss()
            mark("backward")
            loss.backward()
            del loss
        mark("optimizer")
        self.optimize()
        for parameter in self.parameters:
            parameter.grad = None
        mark("end")


class PlannedStep:
    """The plan of memwall for a model's step, made where it will be used, before that takes memory."""

    def __init__(self, arguments, model, policies):
        here = os.path.dirname(os.path.abspath(__file__))
        for package in ("capture", "apply"):
            sys.path.insert(0, os.path.join(here, "..", "..", "traces", package))
        import memwall_apply
        self.package, self.arguments, self.model = memwall_apply, arguments, model
        with tempfile.TemporaryDirectory() as folder:
            base = os.path.join(folder, "step.mwc.gz")
            memwall_apply.record(base, self._build)
            self.plan = self._plan(base, policies)
        self.expected = self.plan.expected

    def _build(self):
        step = Step(self.model, {}, "cuda")  # of fake tensors
        return step.model, step.optimizer, step

    def _plan(self, base, policies):
        ask = lambda *some: self.package.plan(base, *some, machine=self.arguments.machine, program=self.arguments.memwall)
        if any("{" in policy for policy in policies):
            peak = ask("rotor:budget=100TB").expected["peak_requested_bytes"]  # nothing is planned: the step as it is
            policies = [re.sub(r"\{([0-9.]+)\}", lambda m: str(int(float(m[1]) * peak)), policy) for policy in policies]
        return ask(*policies)

    def settings(self):
        return {"apply": lambda model, optimizer: self.package.apply(model, self.plan, optimizer)}

    def row(self):
        return {"planned_step_seconds": self.expected["step_time_s"],
                "planned_peak_allocated": self.expected["peak_requested_bytes"],
                "planned_peak_reserved": self.expected["peak_reserved_bytes"]}


class GpuMarks:
    """Moments on the device, by events: nothing waits while a step runs."""

    def __init__(self, torch):
        self.torch, self.steps = torch, []

    def __call__(self, name):
        if name == "forward":
            self.steps.append([])
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        self.steps[-1].append((name, event))

    def seconds(self):
        self.torch.cuda.synchronize()
        base = self.steps[0][0][1]
        return [[(name, base.elapsed_time(event) * 1e-3) for name, event in step] for step in self.steps]


class CpuMarks:
    def __init__(self):
        self.steps = []

    def __call__(self, name):
        if name == "forward":
            self.steps.append([])
        self.steps[-1].append((name, time.perf_counter()))

    def seconds(self):
        return self.steps


def measure(step, seconds):
    torch, gpu = step.torch, step.device == "cuda"
    for _ in range(3):
        step()
    if gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    marks = GpuMarks(torch) if gpu else CpuMarks()
    begin = time.perf_counter()
    while len(marks.steps) < 5 or (time.perf_counter() - begin < seconds and len(marks.steps) < 200):
        step(marks)
        if gpu and len(marks.steps) % 5 == 0:
            torch.cuda.synchronize()  # the host must not run ahead of the time budget
    steps = marks.seconds()
    # From one step's first moment to the next one's: idle time between steps belongs to a step. The first
    # after a synchronize begins with an empty queue; the median does not see it.
    starts = [s[0][1] for s in steps]
    lengths = sorted(b - a for a, b in zip(starts, starts[1:]))
    phases = {"forward": [], "backward": [], "optimizer": []}
    for s in steps:
        sums = dict.fromkeys(phases, 0.0)
        for (name, begin_time), (_, end_time) in zip(s, s[1:]):
            sums[name] += end_time - begin_time
        for name, value in sums.items():
            phases[name].append(value)
    quantile = lambda q: lengths[min(len(lengths) - 1, int(q * len(lengths)))]
    row = {"step_seconds": statistics.median(lengths), "step_low": quantile(0.1), "step_high": quantile(0.9),
           "steps": len(lengths), "batch": step.batch, "samples": step.batch * step.settings.get("accumulation", 1)}
    row.update({f"{name}_seconds": statistics.median(values) for name, values in phases.items()})
    if gpu:
        row["peak_allocated"] = torch.cuda.max_memory_allocated()
        row["peak_reserved"] = torch.cuda.max_memory_reserved()
    return row


def compress(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(source, "rb") as plain, gzip.GzipFile(target + ".partial", "wb", mtime=0) as packed:
        shutil.copyfileobj(plain, packed)
    os.replace(target + ".partial", target)


def capture(step, prefix, together):
    """A profile with memory events and an ExecutionTrace of one step; a memory snapshot of another, or, if
    `together`, of the same one, so that offload, kernels and allocations stand on one clock."""
    torch, gpu = step.torch, step.device == "cuda"
    import models
    models.Span.enabled = True
    activities = [torch.profiler.ProfilerActivity.CPU] + ([torch.profiler.ProfilerActivity.CUDA] if gpu else [])
    with tempfile.TemporaryDirectory() as folder:
        observer = torch.profiler.ExecutionTraceObserver()
        observer.register_callback(os.path.join(folder, "et.json"))
        history = gpu and (torch.cuda.memory._record_memory_history(max_entries=400000) or True)
        save = lambda profiler: profiler.export_chrome_trace(os.path.join(folder, "kineto.json"))
        with torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True,
                                    execution_trace_observer=observer, on_trace_ready=save,
                                    schedule=torch.profiler.schedule(wait=0, warmup=2, active=1, repeat=1)) as profiler:
            for _ in range(3):
                step()
                if gpu:
                    torch.cuda.synchronize()
                profiler.step()
        models.Span.enabled = False
        observer.unregister_callback()
        if history and not together:
            torch.cuda.memory._record_memory_history(enabled=None)
            torch.cuda.memory._record_memory_history(max_entries=400000)
            step()
        if history:
            torch.cuda.memory._dump_snapshot(os.path.join(folder, "snapshot.pickle"))
            torch.cuda.memory._record_memory_history(enabled=None)
        for name in sorted(os.listdir(folder)):
            compress(os.path.join(folder, name), f"{prefix}.{name}.gz")


def provenance(device):
    import torch
    row = {"date": datetime.date.today().isoformat(), "torch": torch.__version__, "cuda": torch.version.cuda or "",
           "gpu": "none", "driver": ""}
    if device == "cuda":
        row["gpu"] = torch.cuda.get_device_name()
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        with contextlib.suppress(Exception):
            row["driver"] = subprocess.run(query, capture_output=True, text=True, timeout=20).stdout.split()[0]
    return row


def run_case(arguments):
    """The child: prints one JSON object, the row."""
    model, variant = arguments.case
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import torch
    row = {"model": model, "variant": variant, "status": "measured", **provenance(arguments.device)}
    settings = {"save_on_cpu": "pinned"} if variant == OFFLOAD_CAPTURE else VARIANTS[variant][0]
    try:
        if variant in PLANS:
            planned = PlannedStep(arguments, model, PLANS[variant])
            settings = planned.settings()
            row.update(planned.row())
        step = Step(model, settings, arguments.device)
        row.update(measure(step, arguments.seconds))
        if variant == "baseline":
            capture(step, os.path.join(arguments.out, "baseline", model), together=False)
        elif variant == OFFLOAD_CAPTURE:
            capture(step, os.path.join(arguments.out, "capture", model + ".offload"), together=True)
    except torch.OutOfMemoryError as error:
        row.update(status="out_of_memory", note=str(error).splitlines()[0][:200])
    except Exception as error:  # noqa: BLE001
        if type(error).__name__ != "ApplyError":  # of memwall_apply, which only plans import
            raise
        row.update(status="refused", note=str(error)[:200])  # no such plan, or PyTorch cannot carry it out
    print(json.dumps(row))


# ---- the matrix ------------------------------------------------------------------------------------------------

def rows_of(path):
    if not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def append_row(path, row, columns=COLUMNS):
    fresh = not os.path.exists(path)
    # Plain comma-separated: no field holds a comma, a quote or a line break.
    row = {key: str(value).translate(str.maketrans(",\"\r\n", ";'  ")) for key, value in row.items()}
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    if fresh:
        writer.writeheader()
    writer.writerow(row)
    with open(path, "a", newline="") as file:
        file.write(text.getvalue())


def start_case(model, variant, arguments, limit):
    environment = dict(os.environ)
    configuration = VARIANTS.get(variant, ({}, ""))[0].get("alloc_conf")
    if configuration:
        environment["PYTORCH_ALLOC_CONF"] = environment["PYTORCH_CUDA_ALLOC_CONF"] = configuration
    command = [sys.executable, os.path.abspath(__file__), "--case", model, variant, "--out", arguments.out,
               "--device", arguments.device, "--seconds", str(arguments.seconds), "--memwall", arguments.memwall]
    command += ["--machine", arguments.machine] if arguments.machine else []
    row = {"model": model, "variant": variant, "status": "failed"}
    try:
        child = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=limit)
        last = child.stdout.strip().splitlines()[-1:] or [""]
        row = json.loads(last[0]) if child.returncode == 0 else {
            **row, "note": (child.stderr.strip().splitlines() or ["it ended without a word"])[-1][:200]}
    except subprocess.TimeoutExpired:
        row.update(status="no_time", note=f"not done within {limit:.0f} s")
    except ValueError:
        row["note"] = "its last line was no row"
    row["kernels"] = VARIANTS[variant][1] if variant in VARIANTS else "capture"
    return row


def number(row, key, scale, digits):
    value = row.get(key)
    return f"{float(value) * scale:.{digits}f}" if value not in (None, "") else "-"


def print_table(rows):
    print(f"{'model':<12} {'variant':<26} {'status':<14} {'step ms':>9} {'fwd':>8} {'bwd':>8} {'opt':>8} "
          f"{'alloc GB':>9} {'resv GB':>8}")
    for r in rows:
        print(f"{r['model']:<12} {r['variant']:<26} {r['status']:<14} {number(r, 'step_seconds', 1e3, 2):>9} "
              f"{number(r, 'forward_seconds', 1e3, 2):>8} {number(r, 'backward_seconds', 1e3, 2):>8} "
              f"{number(r, 'optimizer_seconds', 1e3, 2):>8} {number(r, 'peak_allocated', 1e-9, 2):>9} "
              f"{number(r, 'peak_reserved', 1e-9, 2):>8}")


def run_matrix(arguments, cases):
    os.makedirs(arguments.out, exist_ok=True)
    path = os.path.join(arguments.out, "results.csv")
    deadline = time.monotonic() + 60 * arguments.minutes
    ended = {(r["model"], r["variant"]) for r in rows_of(path) if r["status"] in ("measured", "out_of_memory", "refused")}
    for number_of_case, (model, variant) in enumerate(cases, 1):
        left = deadline - time.monotonic()
        if (model, variant) in ended or (variant in PLANS and not arguments.machine):
            continue
        if left < arguments.seconds + 15:
            print(f"No time is left after {number_of_case - 1} of {len(cases)} cases; run it again to go on.", file=sys.stderr)
            break
        print(f"[{number_of_case}/{len(cases)}] {model} {variant}", file=sys.stderr, flush=True)
        row = start_case(model, variant, arguments, min(left, arguments.limit))
        append_row(path, row)
        if variant in PLANS:
            append_row(os.path.join(arguments.out, "plans.csv"), row, PLAN_COLUMNS)
    print_table(rows_of(path))


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="\n\n".join(__doc__.split("\n\n")[1:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="folder of the results")
    parser.add_argument("--minutes", type=float, default=20, help="time budget of the whole matrix (20)")
    parser.add_argument("--seconds", type=float, default=4, help="of measured steps per case (4)")
    parser.add_argument("--limit", type=float, default=180, help="seconds after which a case is given up (180)")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--machine", help="name or file of the machine at hand; without, no plans are made and measured")
    parser.add_argument("--memwall", default="memwall", metavar="PROGRAM", help="the program that makes plans (memwall)")
    parser.add_argument("--tiny", action="store_true", help="tiny models, to try the script; never a result")
    parser.add_argument("--only", default="", help="cases whose \"model variant\" contains this")
    parser.add_argument("--list", action="store_true", help="print the cases in their order")
    parser.add_argument("--case", nargs=2, metavar=("MODEL", "VARIANT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if not arguments.list and not arguments.out:
        parser.error("--out is missing: the folder of the results")
    return arguments


# The order in which models are measured; their shapes are in models.py, which needs torch.
MODEL_NAMES = ["gpt2-124m", "bert-large", "llama-1b", "resnet50", "vit-l", "gpt2-355m", "gpt2-1.5b", "llama-3b"]
TINY_NAMES = ["tiny-gpt", "tiny-llama", "tiny-bert", "tiny-resnet"]


def main(argv):
    arguments = parse(argv)
    if arguments.case:
        run_case(arguments)
        return 0
    cases = case_list(TINY_NAMES if arguments.tiny else MODEL_NAMES, arguments.only)
    if arguments.list:
        for model, variant in cases:
            print(model, variant)
        return 0
    try:
        import torch
    except ImportError:
        print("matrix.py needs torch, which this python3 does not have.", file=sys.stderr)
        return 2
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("matrix.py: torch sees no CUDA device; --device cpu --tiny tries the script.", file=sys.stderr)
        return 2
    run_matrix(arguments, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
