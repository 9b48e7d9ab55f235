"""What the framework spends on the host for one operator that it dispatches, from captures of PyTorch.

Of a thread, from one dispatched operator's start to the next one's, less the driver's calls in between: dispatch, the
allocator, Python. Operators that only call others (aten::linear) are not counted, nor what others call (the strides of
a view). The mean, since what a host-bound step takes is a sum. The profiler's own time is in there: each event that it
records costs what an operator takes longer than the one to which it hands its work on (zero_ to fill_, square to pow,
reshape to view), and that is taken off for every event. Captures with Python stacks are not used.

V100: Kineto captures of DLRM. A100: an Nsight Systems capture of a Transformer in eager PyTorch (emit_nvtx).
"""

import bisect
import gzip
import json
import os
import sqlite3
import statistics

from published import NoData

COMPOSITE = {"aten::" + name for name in (
    "linear matmul reshape conv2d convolution _convolution to contiguous dropout batch_norm _batch_norm_impl_index layer_norm "
    "softmax log_softmax cross_entropy_loss nll_loss nll_loss_nd einsum max_pool2d adaptive_avg_pool2d flatten expand_as "
    "embedding_bag item mse_loss index_select zeros zeros_like ones_like full type_as").split()}
LONGEST = 200  # us between two operators: beyond, the thread waited for something else


FORWARDS = (("aten::zero_", "aten::fill_"), ("aten::square", "aten::pow"), ("aten::reshape", "aten::view"))


def kineto(path):
    with gzip.open(path, "rt") as file:
        return [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]


def nsight(path):
    """NVTX ranges of operators and the runtime's calls, as Kineto has them; times in us."""
    with sqlite3.connect("file:%s?mode=ro" % path, uri=True) as database:
        strings = dict(database.execute("select id, value from StringIds"))
        found = []
        for start, end, text, text_id, thread in database.execute(
                "select start, end, text, textId, globalTid from NVTX_EVENTS where end is not null"):
            name = (text or strings.get(text_id) or "").split(",")[0]
            found.append({"cat": "cpu_op", "name": name, "pid": 0, "tid": thread, "ts": start / 1e3, "dur": (end - start) / 1e3})
        for start, end, name, thread in database.execute(
                "select start, end, nameId, globalTid from CUPTI_ACTIVITY_KIND_RUNTIME"):
            found.append({"cat": "cuda_runtime", "name": strings[name], "pid": 0, "tid": thread, "ts": start / 1e3,
                          "dur": (end - start) / 1e3})
    return found


def captures():
    """By generation of the GPU whose host it was."""
    shared = os.environ.get("MEMWALL_SHARED", "")
    folder = os.path.join(shared, "data", "traces")
    dlrm = [os.path.join(folder, "dlrm_8xv100", "rank%d.kineto.json.gz" % rank) for rank in range(4)]
    small = os.path.join(folder, "nsys", "lm_small_train_a100.sqlite")
    for path in dlrm + [small]:
        if not os.path.exists(path):
            raise NoData("there is no %s below MEMWALL_SHARED" % os.path.relpath(path, shared))
    return {"v100": [kineto(path) for path in dlrm], "a100": [nsight(small)]}


def by_thread(capture, category, prefix=""):
    threads = {}
    for e in capture:
        if e.get("cat") == category and e["name"].startswith(prefix):
            threads.setdefault((e["pid"], e["tid"]), []).append(e)
    for found in threads.values():
        found.sort(key=lambda e: (e["ts"], -e["dur"]))
    return threads


def dispatched(operators):
    """Of one thread's, those that the dispatcher was called for by the program or the autograd engine."""
    found, stack = [], []
    for e in operators:
        while stack and stack[-1][0] <= e["ts"]:
            stack.pop()
        if all(composite for _, composite in stack) and e["name"] not in COMPOSITE:
            found.append(e)
        stack.append((e["ts"] + e["dur"], e["name"] in COMPOSITE))
    return found


def event_cost(threads):
    """us: the median of what an operator takes longer than the only one inside it, to which it hands its work on."""
    longer = []
    for operators in threads.values():
        for one, inside, after in zip(operators, operators[1:], operators[2:]):
            end = one["ts"] + one["dur"]
            if (one["name"], inside["name"]) in FORWARDS and inside["ts"] < end and after["ts"] >= end:
                longer.append(one["dur"] - inside["dur"])
    return statistics.median(longer)


def times(capture):
    """us per dispatched operator without driver calls, [] per pass, and what an event costs.

    The program's thread is the one with the forward pass: backward has one of its own, where few operators are views
    of what Python holds."""
    calls = by_thread(capture, "cuda_runtime")
    threads = by_thread(capture, "cpu_op", "aten::")
    backward = {t for t, es in by_thread(capture, "cpu_op", "autograd::engine").items() if len(es) > 20}
    if not backward:  # NVTX ranges have no such events: the thread of the accumulations
        backward = {t for t, es in threads.items() if sum(e["name"] == "aten::squeeze" for e in es) > 20}
    recorded = by_thread(capture, "cpu_op")  # nodes of the graph are recorded too
    cost = event_cost(threads)
    result = {"forward": [], "backward": []}
    for thread, operators in threads.items():
        of_thread = calls.get(thread, [])
        starts = [e["ts"] for e in of_thread]
        all_starts = [e["ts"] for e in recorded[thread]]
        ops = dispatched(operators)
        for one, following in zip(ops, ops[1:]):
            a, b = bisect.bisect_left(starts, one["ts"]), bisect.bisect_left(starts, following["ts"])
            inside = bisect.bisect_left(all_starts, following["ts"]) - bisect.bisect_left(all_starts, one["ts"])
            span = following["ts"] - one["ts"] - sum(c["dur"] for c in of_thread[a:b]) - inside * cost
            if span < LONGEST:
                result["backward" if thread in backward else "forward"].append(max(span, 0))
    return result, cost


def fit():
    """By generation and pass: the mean over all captures in s, their number of operators; what one event costs in s."""
    result = {}
    for generation, ours in captures().items():
        found = [times(capture) for capture in ours]
        result[generation] = {"event": statistics.median(cost for _, cost in found) * 1e-6}
        for phase in ("forward", "backward"):
            everything = [x for t, _ in found for x in t[phase]]
            result[generation][phase] = statistics.mean(everything) * 1e-6, len(everything)
    return result
