#!/usr/bin/env python3
"""What do 1,000 scenarios cost from Python, beside `memwall sweep`? In turns, CPU time of the whole process.

    PYTHONPATH=build/release/study/python tests/bench/python_bench.py build/release/cli/memwall \
      [STEP [POINTS [TURNS [MACHINE]]]]

Three ways to the same points: the program, `mw.sweep`, and a loop of `mw.run(scenario, quick=True)`. Each is a process of
its own; the step is read in each. What it takes to start a process that does nothing (`memwall --version`, `import
memwall`) is measured, too, and the points are compared without it.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = sys.argv[1]
STEP = sys.argv[2] if len(sys.argv) > 2 else str(ROOT / "traces/samples/gpt_124m.mwt")
POINTS = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
TURNS = int(sys.argv[4]) if len(sys.argv) > 4 else 5
MACHINE = sys.argv[5] if len(sys.argv) > 5 else "a100-sxm-40gb"
OVER = f"scale.kernels=1..2:{POINTS}"

SWEEP = f"import memwall as mw; s = mw.sweep(mw.Scenario({STEP!r}, {MACHINE!r}), over={OVER!r}, jobs=1); assert len(s) == {POINTS}"
LOOP = f"""
import memwall as mw
step = mw.Step({STEP!r})
times = [mw.run(mw.Scenario(step, {MACHINE!r}, scale=[f"kernels={{1 + i / ({POINTS} - 1)!r}}"]), quick=True).step_time for i in range({POINTS})]
assert len(set(times)) > {POINTS} / 2
"""
WAYS = {
    "memwall sweep --jobs 1": [PROGRAM, "sweep", STEP, "--machine", MACHINE, "--over", OVER, "--jobs", "1", "--no-journal", "--format", "csv"],
    "mw.sweep(jobs=1)": [sys.executable, "-c", SWEEP],
    "mw.run(quick=True) in a loop": [sys.executable, "-c", LOOP],
}


def measured(words):
    """CPU seconds, wall seconds, peak of resident bytes."""
    begun = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return used.ru_utime + used.ru_stime, time.monotonic() - begun, used.ru_maxrss * 1024


STARTS = {name: [PROGRAM, "--version"] if words[0] == PROGRAM else [sys.executable, "-c", "import memwall"] for name, words in WAYS.items()}

rows, starts = {name: [] for name in WAYS}, {name: [] for name in WAYS}
for _ in range(TURNS):
    for name, words in WAYS.items():
        rows[name].append(measured(words))
        starts[name].append(measured(STARTS[name]))
print(f"| {POINTS} scenarios of {os.path.basename(STEP)} | CPU time | of that to start | the rest beside the program's | peak memory |")
print("|---|---|---|---|---|")
base = None
for name in WAYS:
    cpu, start = (statistics.median(cpu for cpu, _, _ in found[name]) for found in (rows, starts))
    base = base or cpu - start
    more = 100 * ((cpu - start) / base - 1)
    memory = max(m for _, _, m in rows[name]) / 1e6
    print(f"| `{name}` | {cpu:.2f} s | {start:.2f} s | {more:+.1f} % | {memory:.0f} MB |")
