"""What the framework spends on the host for one operator that it dispatches, from Kineto captures of PyTorch.

Of a thread, from one dispatched operator's start to the next one's, less the driver's calls in between: dispatch, the
allocator, Python. Operators that only call others (aten::linear) are not counted, nor what others call (the strides of
a view). The profiler's own time is in there: each event that it records costs what a view that does nothing else
(aten::as_strided) takes inside, and that is taken off for every event. Captures with Python stacks are not used.
"""

import bisect
import gzip
import json
import os
import statistics

from published import NoData

COMPOSITE = {"aten::" + name for name in (
    "linear matmul reshape conv2d convolution _convolution to contiguous dropout batch_norm _batch_norm_impl_index layer_norm "
    "softmax log_softmax cross_entropy_loss nll_loss nll_loss_nd einsum max_pool2d adaptive_avg_pool2d flatten expand_as "
    "embedding_bag item mse_loss index_select zeros zeros_like ones_like full type_as").split()}
LONGEST = 200  # us between two operators: beyond, the thread waited for something else


def events(path):
    with gzip.open(path, "rt") as file:
        return [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]


def captures():
    shared = os.environ.get("MEMWALL_SHARED", "")
    folder = os.path.join(shared, "data", "traces", "dlrm_8xv100")
    if not os.path.isdir(folder):
        raise NoData("there is no data/traces/dlrm_8xv100 below MEMWALL_SHARED")
    return [events(os.path.join(folder, "rank%d.kineto.json.gz" % rank)) for rank in range(4)]


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


def times(capture):
    """us per dispatched operator without driver calls, [] per pass; the program's thread is the one with few backwards."""
    calls = by_thread(capture, "cuda_runtime")
    backward_threads = {t for t, es in by_thread(capture, "cpu_op", "autograd::engine").items() if len(es) > 20}
    views = [e["dur"] for es in by_thread(capture, "cpu_op", "aten::as_strided").values() for e in es]
    event_cost = statistics.median(views)
    result = {"forward": [], "backward": []}
    for thread, operators in by_thread(capture, "cpu_op", "aten::").items():
        of_thread = calls.get(thread, [])
        starts = [e["ts"] for e in of_thread]
        all_starts = [e["ts"] for e in operators]
        ops = dispatched(operators)
        for one, following in zip(ops, ops[1:]):
            a, b = bisect.bisect_left(starts, one["ts"]), bisect.bisect_left(starts, following["ts"])
            inside = bisect.bisect_left(all_starts, following["ts"]) - bisect.bisect_left(all_starts, one["ts"])
            span = following["ts"] - one["ts"] - sum(c["dur"] for c in of_thread[a:b]) - inside * event_cost
            if span < LONGEST:
                result["backward" if thread in backward_threads else "forward"].append(max(span, 0))
    return result, event_cost


def fit():
    """Medians over all captures in s, the spread of the captures' medians, and what one event costs."""
    found = [times(c) for c in captures()]
    result = {}
    for phase in ("forward", "backward"):
        medians = [statistics.median(t[phase]) for t, _ in found if t[phase]]
        everything = [x for t, _ in found for x in t[phase]]
        result[phase] = statistics.median(everything) * 1e-6, len(everything), min(medians) * 1e-6, max(medians) * 1e-6
        result[phase + "_mean"] = statistics.mean(everything) * 1e-6
    result["event"] = statistics.median(cost for _, cost in found) * 1e-6
    return result
