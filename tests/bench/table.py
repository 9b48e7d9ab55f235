#!/usr/bin/env python3
"""What memwall costs: one table, for one program or for two side by side.

    tests/bench/table.py build/release/cli/memwall [OTHER_PROGRAM] [--instructions | --quick] [--layers N] [--rounds N]

Steps of a Llama of several depths are generated first. A figure per op is a difference quotient between a deep step and
one of half the depth, so that start-up is in none of them; start-up has rows of its own. CPU time (user and system) is the
least of several rounds in which the programs take turns: other load on the machine meets both. Peak memory is that of the
deep step. The last column is the second program by the first: below 1 the second takes less, but of rates (.../s), where
it is slower. "Growth" is the exponent by which CPU time grows with the number of layers: 1 is linear.
What the engine, the importers and a study do within a process comes from memwall_bench of the same build, where it was
built. --instructions counts by callgrind on small steps instead: exact, the same on every machine, and what shows that a
commit is slower. --quick leaves out memwall_bench and growth. Needs Python alone; --instructions needs valgrind.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile

MACHINE = ["--machine", "h100-sxm-80gb"]
PER_OP = [  # name, arguments; {step} and {out} are files
    ("run", ["run", "{step}", *MACHINE]),
    ("run, recorded and written", ["run", "{step}", "-o", "{out}", *MACHINE]),
    ("run, checkpoint:mode=full", ["run", "{step}", "--policy", "checkpoint:mode=full", *MACHINE]),
    ("run, offload:what=optimizer", ["run", "{step}", "--policy", "offload:what=optimizer", *MACHINE]),
    ("run, offload:what=activations", ["run", "{step}", "--policy", "offload:what=activations", *MACHINE]),
    ("run, zero:stage=3,ranks=8", ["run", "{step}", "--policy", "zero:stage=3,ranks=8", *MACHINE]),
    ("run, fusion", ["run", "{step}", "--policy", "fusion", *MACHINE]),
    ("render, timeline", ["render", "{run}", "-o", "{picture}"]),
    ("compare, a run with itself", ["compare", "{run}", "{run}", "--format", "json"]),
]
START_UP = [
    ("--version", ["--version"]),
    ("run, 3 layers", ["run", "{tiny}", *MACHINE]),
    ("run, 3 layers, with --set", ["run", "{tiny}", *MACHINE, "--set", "gpu.hbm.bandwidth=3TB/s"]),
]
GROWTH = [  # name, arguments, layers
    ("growth, --pager lru", ["run", "{step}", *MACHINE, "--pager", "lru"], 100),
    ("growth, offload:what=parameters", ["run", "{step}", *MACHINE, "--policy", "offload:what=parameters"], 300),
]
WITHIN_A_PROCESS = [  # benchmark of memwall_bench, what of it, its unit, by what it is divided
    ("replay/1000", "items_per_second", "M ops/s", 1e6),
    ("replay/100000", "items_per_second", "M ops/s", 1e6),
    ("contended/bare", "items_per_second", "M ops/s", 1e6),
    ("contended/observed", "items_per_second", "M ops/s", 1e6),
    ("scenarios/sample", "cpu_time", "us", 1),
    ("scenarios/sample_checkpoint", "cpu_time", "us", 1),
    ("scenarios/gpt3_175b", "cpu_time", "us", 1),
    ("scenarios/gpt3_175b_checkpoint", "cpu_time", "us", 1),
    ("read_json", "bytes_per_second", "MB/s", 1e6),
    ("read_gzip", "bytes_per_second", "MB/s", 1e6),
    ("capture_to_trace", "bytes_per_second", "MB/s", 1e6),
]
DOES_NOT_FIT = 3  # exit status of a run whose step is too large for the GPU; it is simulated all the same


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
    """(instructions, not a number) of a command, counted by callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", *command],
            capture_output=True, text=True, check=False)
    count = re.search(r"Collected : (\d+)", found.stderr)
    if found.returncode not in (0, DOES_NOT_FIT) or count is None:
        print(f"{' '.join(command)}: under valgrind: {found.stderr[-500:]}", file=sys.stderr)
        return math.nan, math.nan
    return int(count[1]), math.nan


class Table:
    """Prints rows as they come: what, its unit, a value per program, and the second by the first."""

    def __init__(self, programs):
        print(f"{'what':44} {'unit':20}" + "".join(f"{'program ' + str(p + 1):>12}" for p in range(programs)) +
              ("     2 / 1" if programs == 2 else ""))

    @staticmethod
    def row(what, unit, values):
        shown = "".join(f"{'-':>12}" if math.isnan(v) else f"{v:12,.0f}" if v >= 100 else f"{v:12.2f}" for v in values)
        ratio = f"{values[1] / values[0]:10.2f}" if len(values) == 2 and values[0] and not math.isnan(sum(values)) else ""
        print(f"{what:44} {unit:20}{shown}{ratio}", flush=True)


class Bench:
    def __init__(self, arguments, folder):
        self.programs, self.folder = arguments.programs, folder
        self.count, self.rounds = arguments.instructions, 1 if arguments.instructions else arguments.rounds
        self.table = Table(len(self.programs))

    def step(self, layers):
        """A step of so many layers: its path and its number of ops."""
        path = os.path.join(self.folder, f"llama_{layers}.mwt")
        said = subprocess.run([self.programs[0], "generate", "llama3-8b", "--set", f"layers={layers}", "-o", path],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
        return path, int(re.search(r": (\d+) ops", said)[1])

    def least(self, arguments):
        """Per program the least (cost, peak) of all rounds."""
        best = [(math.nan, math.nan)] * len(self.programs)
        for _ in range(self.rounds):
            for p, program in enumerate(self.programs):
                names = {**arguments[1], "out": os.path.join(self.folder, "out.h5"),
                         "picture": os.path.join(self.folder, "out.svg"), "run": self.run_of(program, arguments)}
                command = [program, *[a.format(**names) for a in arguments[0]]]
                found = instructions(command) if self.count else measured(command)
                if math.isnan(best[p][0]) or found[0] < best[p][0]:
                    best[p] = found
        return best

    def run_of(self, program, arguments):
        """The run that `program` wrote of the step, where the command asks for one: each reads its own."""
        if not any("{run}" in a for a in arguments[0]):
            return ""
        path = f"{arguments[1]['step']}.{self.programs.index(program)}.h5"
        if not os.path.exists(path):
            subprocess.run([program, "run", arguments[1]["step"], *MACHINE, "-o", path], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
        return path

    def per_op(self, layers):
        steps = [self.step(n) for n in (layers // 2, layers)]
        print(f"Steps of {steps[0][1]:,} and {steps[1][1]:,} ops.", file=sys.stderr)
        more = steps[1][1] - steps[0][1]
        for name, arguments in PER_OP:
            half, whole = (self.least((arguments, {"step": path})) for path, _ in steps)
            cost = [(b[0] - a[0]) / more for a, b in zip(half, whole)]
            if self.count:
                self.table.row(name, "instructions per op", cost)
                continue
            self.table.row(name, "ns per op", [c * 1e9 for c in cost])
            self.table.row("", "bytes per op, peak", [b[1] / steps[1][1] for b in whole])

    def start_up(self):
        tiny, _ = self.step(3)
        for name, arguments in START_UP:
            found = self.least((arguments, {"tiny": tiny}))
            self.table.row(f"start, {name}", "M instructions" if self.count else "ms",
                           [f[0] / 1e6 if self.count else f[0] * 1e3 for f in found])

    def growth(self):
        for name, arguments, layers in GROWTH:
            costs = [self.least((arguments, {"step": self.step(n)[0]})) for n in (layers, 2 * layers, 4 * layers)]
            self.table.row(f"{name}, {4 * layers} layers", "s", [c[0] for c in costs[2]])
            # Of the difference quotients, so that start-up does not flatter it.
            self.table.row("", "exponent", [
                math.log2((c[0] - b[0]) / (b[0] - a[0])) if c[0] > b[0] > a[0] else math.nan for a, b, c in zip(*costs)])

    def within_a_process(self):
        found = [self.benchmarks(program) for program in self.programs]
        for name, key, unit, factor in WITHIN_A_PROCESS:
            values = [f.get(name, {}).get(key, math.nan) / factor for f in found]
            if not all(math.isnan(v) for v in values):
                self.table.row(name, unit, values)

    @staticmethod
    def benchmarks(program):
        """What memwall_bench of the program's build reports, by name; nothing where it was not built."""
        bench = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(program))), "tests", "bench", "memwall_bench")
        if not os.path.exists(bench):
            print(f"{bench} was not built: its rows are left out.", file=sys.stderr)
            return {}
        wanted = "|".join(f"^{name}$" for name, *_ in WITHIN_A_PROCESS)
        said = subprocess.run([bench, f"--benchmark_filter={wanted}", "--benchmark_format=json"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
        return {b["name"]: b for b in json.loads(said)["benchmarks"]} if said.startswith("{") else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--layers", type=int, help="of the deep step (default: 2,000; 40 with --instructions)")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if len(arguments.programs) > 2:
        parser.error(f"{len(arguments.programs)} programs were given; expected one or two.")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, folder)
        bench.start_up()
        bench.per_op(arguments.layers or (40 if arguments.instructions else 2000))
        if not arguments.instructions and not arguments.quick:
            bench.growth()
            bench.within_a_process()


if __name__ == "__main__":
    main()
