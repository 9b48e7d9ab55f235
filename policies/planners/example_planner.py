#!/usr/bin/env python3
"""A planner for memwall run STEP --policy exec:policies/planners/example_planner.py,budget=...

Sends to the host what rests longest, the largest first, until what lives on the device keeps to the budget.
"""
import bisect
import itertools
import json
import sys

step = json.load(sys.stdin)
ops, storages = step["ops"], step["storages"]
bandwidth = min(link["bytes_per_second"] for link in step["machine"]["links"]
                if {link["from"], link["to"]} == {"hbm", "host"})

change = [0] * (len(ops) + 1)  # of what lives on the device, by op
for storage in storages:
    change[storage["alloc"] or 0] += storage["block_bytes"]
    change[len(ops) if storage["free"] is None else storage["free"]] -= storage["block_bytes"]
live = list(itertools.accumulate(change))  # bytes after each op
reached = list(itertools.accumulate((op["start_s"] for op in ops), max))  # when the device is there, by op

gaps = [(gap, number) for number, storage in enumerate(storages) for gap in storage["gaps"]
        if gap["needs_content"] and not gap["wraps"]]
decisions = {}  # by storage
for gap, number in sorted(gaps, key=lambda g: (g[0]["begin_s"] - g[0]["end_s"]) * storages[g[1]]["bytes"]):
    copy_time = storages[number]["bytes"] / bandwidth
    dropped = max(bisect.bisect_left(reached, gap["begin_s"] + copy_time), gap["after"] + 1)  # the copy has left
    fetched = min(bisect.bisect_right(reached, gap["end_s"] - 2 * copy_time) - 1, gap["before"])  # and will be back
    if number in decisions or dropped >= fetched or max(live[dropped:fetched]) <= step["budget"]:
        continue
    for op in range(dropped, fetched):
        live[op] -= storages[number]["block_bytes"]
    decisions[number] = {"storage": number, "copies": [{"op": gap["after"], "after": True, "to": "host"}],
                         "drops": [{"op": dropped, "after": False}],
                         "fetches": [{"op": fetched, "after": False, "from": "host"}]}

json.dump({"format": "memwall-plan", "version": 1, "made_by": "example_planner.py", "trace": step["trace"],
           "tiers": [{"tier": "host"}], "decisions": list(decisions.values()), "reruns": []}, sys.stdout)
