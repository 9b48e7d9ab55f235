#!/usr/bin/env python3
"""A planner for memwall run STEP --policy exec:policies/planners/example_planner.py,budget=...

Sends to the host what rests longest, the largest first, until what lives on the device keeps to the budget.
"""
import bisect
import json
import sys

step = json.load(sys.stdin)
ops, storages = step["ops"], step["storages"]
to_host = min(link["bytes_per_second"] for link in step["machine"]["links"] if "host" in (link["from"], link["to"])
              and "hbm" in (link["from"], link["to"]))

live, change = [], [0] * (len(ops) + 1)  # bytes of device memory after each op
for storage in storages:
    change[storage["alloc"] or 0] += storage["block_bytes"]
    if storage["free"] is not None:
        change[storage["free"]] -= storage["block_bytes"]
for delta in change[:-1]:
    live.append((live[-1] if live else 0) + delta)

reached = []  # by op, the latest start so far: when the device is there
for op in ops:
    reached.append(max(op["start_s"], reached[-1] if reached else 0))

candidates = []
for number, storage in enumerate(storages):
    gaps = [gap for gap in storage["gaps"] if gap["needs_content"] and not gap["wraps"]]
    if gaps:
        gap = max(gaps, key=lambda g: g["end_s"] - g["begin_s"])
        candidates.append(((gap["end_s"] - gap["begin_s"]) * storage["bytes"], number, gap))

decisions = []
for _, number, gap in sorted(candidates, key=lambda c: (-c[0], c[1])):
    if max(live) <= step["budget"]:
        break
    copy_time = storages[number]["bytes"] / to_host
    dropped = max(bisect.bisect_left(reached, gap["begin_s"] + copy_time), gap["after"] + 1)  # the copy has left
    fetched = min(bisect.bisect_right(reached, gap["end_s"] - 2 * copy_time) - 1, gap["before"])  # and will be back
    if dropped >= fetched or max(live[dropped:fetched]) <= step["budget"]:
        continue
    for op in range(dropped, fetched):
        live[op] -= storages[number]["block_bytes"]
    decisions.append({"storage": number, "copies": [{"op": gap["after"], "after": True, "to": "host"}],
                      "drops": [{"op": dropped, "after": False}],
                      "fetches": [{"op": fetched, "after": False, "from": "host"}]})

json.dump({"format": "memwall-plan", "version": 1, "made_by": "example_planner.py", "trace": step["trace"],
           "tiers": [{"tier": "host"}], "decisions": decisions, "reruns": []}, sys.stdout)
