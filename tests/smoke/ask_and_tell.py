"""A searcher without any package: asks memwall sweep --ask-tell for points, a few in flight, halving the budget until
the step no longer fits. Prints the smallest budget that fits, in MiB, and how many points were asked for.

Usage: ask_and_tell.py MEMWALL STEP MACHINE"""

import json
import subprocess
import sys

memwall, step, machine = sys.argv[1:4]
command = [memwall, "sweep", step, "--machine", machine, "--policy", "checkpoint", "--ask-tell", "--objective",
           "step_time", "--where", "fits", "--no-journal", "--jobs", "3"]
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:

    def ask(budgets):
        for budget in budgets:
            program.stdin.write(json.dumps({"id": ["budget", budget], "set": {"budget": f"{budget}MiB"}}) + "\n")
        program.stdin.flush()
        answers = [json.loads(program.stdout.readline()) for _ in budgets]
        assert sorted(answer["id"][1] for answer in answers) == sorted(budgets), answers
        assert not any(answer["error"] for answer in answers), answers
        return {answer["id"][1]: answer["feasible"] for answer in answers}

    low, high, asked = 256, 65536, 0
    while high - low > 64:
        between = [low + (high - low) * part // 4 for part in (1, 2, 3)]
        feasible = ask(between)
        asked += len(between)
        for budget in between:
            if feasible[budget]:
                high = min(high, budget)
            else:
                low = max(low, budget)
    program.stdin.close()
    assert program.wait() == 0
print(high, asked)
