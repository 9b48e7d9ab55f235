#!/usr/bin/env python3
"""What a command of memwall costs per op: one table, for one program or for two side by side.

    tests/bench/table.py build/release/cli/memwall [OTHER_PROGRAM] [--instructions] [--layers N] [--rounds N]

Steps of a Llama of several depths are generated first. Every figure is a difference quotient between a deep step and one
of half the depth, so that start-up is in none of them; start-up has a row of its own. CPU time (user and system) is the
least of several rounds in which the programs take turns: other load on the machine meets both. --instructions counts by
callgrind on a small step instead: exact, the same on every machine, and what shows that a commit is slower.
Needs Python alone; --instructions needs valgrind.
"""
import argparse
import math
import os
import re
import subprocess
import sys
import tempfile

COMMANDS = [  # name, arguments; {} is the step
    ("run", ["run", "{}"]),
    ("run, recorded and written", ["run", "{}", "-o", "{out}"]),
    ("run, checkpoint:mode=full", ["run", "{}", "--policy", "checkpoint:mode=full"]),
    ("run, offload:what=optimizer", ["run", "{}", "--policy", "offload:what=optimizer"]),
    ("run, offload:what=activations", ["run", "{}", "--policy", "offload:what=activations"]),
    ("run, zero:stage=3", ["run", "{}", "--policy", "zero:stage=3,ranks=8"]),
    ("run, fusion", ["run", "{}", "--policy", "fusion"]),
]
DOES_NOT_FIT = 3  # exit status of a run whose step is too large for the GPU; it is simulated all the same
MACHINE = ["--machine", "h100-sxm-80gb"]


def measured(command):
    """(CPU seconds, peak bytes) of a command; not a number where it fails, and what it said on standard error."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        if os.waitstatus_to_exitcode(status) not in (0, DOES_NOT_FIT):
            said.seek(0)
            print(f"{' '.join(command)}: {said.read().decode(errors='replace')}", file=sys.stderr)
            return math.nan, math.nan
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def instructions(command):
    """Instructions of a command, counted by callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", *command],
            capture_output=True, text=True, check=False)
    count = re.search(r"Collected : (\d+)", found.stderr)
    if found.returncode not in (0, DOES_NOT_FIT) or count is None:
        print(f"{' '.join(command)}: under valgrind: {found.stderr[-500:]}", file=sys.stderr)
        return math.nan
    return int(count[1])


def generated(program, folder, layers):
    """A step of so many layers: its path and its number of ops."""
    step = os.path.join(folder, f"llama_{layers}.mwt")
    said = subprocess.run([program, "generate", "llama3-8b", "--set", f"layers={layers}", "-o", step],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
    return step, int(re.search(r": (\d+) ops", said)[1])


def rows(programs, folder, layers, rounds, count):
    steps, sizes = zip(*(generated(programs[0], folder, n) for n in (layers // 2, layers)))
    per = sizes[1] - sizes[0]
    print(f"Steps of {sizes[0]:,} and {sizes[1]:,} ops.", file=sys.stderr)
    for name, arguments in COMMANDS:
        cost = {}
        for _ in range(1 if count else rounds):
            for p, program in enumerate(programs):
                for s, step in enumerate(steps):
                    out = os.path.join(folder, "out.h5")
                    command = [program, *[a.format(step, out=out) for a in arguments], *MACHINE]
                    found = (instructions(command), 0) if count else measured(command)
                    cost[p, s] = min(cost.get((p, s), found), found)
        for p, _ in enumerate(programs):
            time = (cost[p, 1][0] - cost[p, 0][0]) / per
            yield name, p, (time, "instructions per op") if count else (time * 1e9, "ns per op"), cost[p, 1][1] / sizes[1]


def start_up(programs, rounds):
    for p, program in enumerate(programs):
        yield p, min(measured([program, "--version"])[0] for _ in range(5 * rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--layers", type=int, help="of the deep step (default: 2,000; 40 with --instructions)")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    layers = arguments.layers or (40 if arguments.instructions else 2000)
    width = max(len(name) for name, _ in COMMANDS)
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'command':{width}}  program  cost                          bytes per op (peak)")
        for name, p, (value, unit), peak in rows(arguments.programs, folder, layers, arguments.rounds,
                                                 arguments.instructions):
            note = "" if arguments.instructions else f"{1e3 / value:6.2f} M ops/s"
            print(f"{name:{width}}  {p + 1:>7}  {value:8.0f} {unit:12} {note:14}{peak:10.0f}", flush=True)
    for p, seconds in start_up(arguments.programs, arguments.rounds):
        print(f"{'--version (start-up)':{width}}  {p + 1:>7}  {seconds * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
