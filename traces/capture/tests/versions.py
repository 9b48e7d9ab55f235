#!/usr/bin/env python3
"""With which versions of PyTorch does memwall_capture work?

    versions.py [--keep DIR] [VERSION...]       # 2.4 2.5 ... 2.15, each the newest of its minor; all if none is named
    versions.py --here                          # with the torch of this interpreter

Each version gets an environment of its own, which is deleted afterwards, unless --keep names a folder for them. A row
of the table in ../README.md per version: does the package import, do the tests on fake tensors pass, do those pass that
record what really runs (on the CPU: no GPU is needed). Tests are counted as they ended; the failed ones are named
below the row. Exit code 0 where every version that fake() does not refuse passed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
VERSIONS = [f"2.{minor}" for minor in range(4, 16)]
FAKE, REAL = ("capture_test.py", "planned_test.py", "compiled_test.py", "fully_sharded_test.py"), ("timing_test.py",)
PROBE = """
import memwall_capture
try:
    with memwall_capture.fake():
        pass
except memwall_capture.CaptureError as error:
    print(error)
"""


def run(python, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(HERE)}
    done = subprocess.run([python, *arguments], env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def tested(python, files):
    """(as a cell of the table, names of the tests that did not pass)."""
    counts, failed = {"ran": 0, "failures": 0, "errors": 0, "skipped": 0}, []
    for name in files:
        code, _, said = run(python, os.path.join(HERE, name))
        ran = re.search(r"^Ran (\d+) test", said, re.MULTILINE)
        if ran is None:
            failed.append(f"{name} ended with code {code}: {said.strip().splitlines()[-1:]}")
            counts["errors"] += 1
            continue
        counts["ran"] += int(ran[1])
        for key, count in re.findall(r"(failures|errors|skipped)=(\d+)", said.splitlines()[-1]):
            counts[key] += int(count)
        failed += re.findall(r"^(?:FAIL|ERROR): (\S+)", said, re.MULTILINE)
    bad = counts["failures"] + counts["errors"]
    text = f"{max(0, counts['ran'] - bad - counts['skipped'])} of {counts['ran']} pass"
    return text + (f", {counts['skipped']} skipped" if counts["skipped"] else ""), failed


def row(python):
    """(cells, names of failed tests) of one interpreter."""
    version = run(python, "-c", "import torch; print(torch.__version__)")[1].strip() or "torch does not import"
    code, refusal, said = run(python, "-c", PROBE)
    if code != 0:
        return [version, f"no: {said.strip().splitlines()[-1]}", "-", "-"], []
    fake, failed = ("refused", []) if refusal else tested(python, FAKE)
    real, failed_really = tested(python, REAL)
    return [version, "yes", fake, real], failed + failed_really


def make_environment(folder, version):
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", f"torch=={version}.*", "numpy",
                        "setuptools"], check=True)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    parser.add_argument("--keep", metavar="DIR", help="folder of environments, DIR/VERSION; made where they are missing")
    parser.add_argument("--here", action="store_true", help="with this interpreter")
    arguments = parser.parse_args()
    unknown = [version for version in arguments.versions if not re.fullmatch(r"\d+\.\d+", version)]
    if unknown:
        parser.error(f"found {unknown[0]!r}; expected a version like 2.9")
    print("| torch | import | fake | real |\n|---|---|---|---|", flush=True)
    passed = True
    for version in ["here"] if arguments.here else arguments.versions or VERSIONS:
        folder = os.path.join(arguments.keep or tempfile.mkdtemp(prefix="memwall-torch-"), version)
        try:
            cells, failed = row(sys.executable if arguments.here else make_environment(folder, version))
        finally:
            if not arguments.keep:
                shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
        print("| " + " | ".join(cells) + " |", flush=True)
        for name in failed:
            print(f"  failed with {cells[0]}: {name}", file=sys.stderr, flush=True)
        passed = passed and cells[1] == "yes" and not failed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
