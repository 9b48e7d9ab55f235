#!/usr/bin/env python3
"""Lets Optuna search the points of `memwall sweep --ask-tell`: which policy, bus and budget make a step the fastest?

    python3 docs/examples/optuna_search.py traces/samples/gpt_124m.mwt a100-sxm-80gb 30

Needs optuna (PyPI). Several trials are in flight at once: memwall computes them on all cores, and answers each as soon
as it is finished. What does not fit is told to Optuna as a constraint that is violated.
"""

import json
import subprocess
import sys

import optuna

IN_FLIGHT = 4


def suggested(trial):
    """The axes of one point, as `memwall sweep --over` names them."""
    axes = {"policy": trial.suggest_categorical("policy", ["none", "checkpoint", "offload:what=activations"]),
            "pcie": f"{trial.suggest_float('pcie', 16, 64, log=True):.1f}GB/s",
            "budget": f"{trial.suggest_float('budget', 6, 40):.1f}GiB"}
    return axes


def main(step, machine, trials, memwall="memwall"):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    search = optuna.create_study(sampler=optuna.samplers.TPESampler(
        seed=7, constraints_func=lambda trial: trial.user_attrs["violated"]))
    command = [memwall, "sweep", step, "--machine", machine, "--ask-tell", "--objective", "step_time",
               "--where", "fits", "--no-journal"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as program:
        asked, told, flying = 0, 0, {}
        while told < trials:
            while asked < trials and len(flying) < IN_FLIGHT:
                trial = search.ask()
                flying[trial.number] = trial
                program.stdin.write(json.dumps({"id": trial.number, "set": suggested(trial)}) + "\n")
                program.stdin.flush()
                asked += 1
            answer = json.loads(program.stdout.readline())
            trial = flying.pop(answer["id"])
            told += 1
            trial.set_user_attr("violated", (0.0,) if answer["feasible"] else (1.0,))
            trial.set_user_attr("scenario", answer["scenario"] or "")
            if answer["error"]:
                search.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                search.tell(trial, answer["objectives"]["step_time"])
        program.stdin.close()
    feasible = [t for t in search.trials if t.value is not None and t.user_attrs["violated"] == (0.0,)]
    best = min(feasible, key=lambda t: t.value)
    print(f"{len(search.trials)} trials, {len(feasible)} feasible; the best takes {best.value:.6f} s:")
    print(f"  memwall run '{best.user_attrs['scenario']}'")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:5])
