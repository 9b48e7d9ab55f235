"""What Holistic Trace Analysis makes of a folder of profiles, as JSON: for each rank its temporal breakdown, the time of
each kernel, and how much of the communication lies beside computation.

Usage: hta_figures.py FOLDER"""

import json
import os
import sys
import warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # else it takes up to a microsecond from each event
warnings.filterwarnings("ignore")

from hta.trace_analysis import TraceAnalysis  # noqa: E402

analysis = TraceAnalysis(trace_dir=sys.argv[1], include_last_profiler_step=True)
temporal = analysis.get_temporal_breakdown(visualize=False)
_, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=10_000, duration_ratio=1.0,
                                               include_memory_kernels=True)
overlap = analysis.get_comm_comp_overlap(visualize=False)
idle, _ = analysis.get_idle_time_breakdown(visualize=False)
ranks = {}
for row in temporal.to_dict("records"):
    rank = int(row["rank"])
    own = kernels[kernels["rank"] == rank]
    ranks[rank] = {
        "idle_us": row["idle_time(us)"], "compute_us": row["compute_time(us)"],
        "non_compute_us": row["non_compute_time(us)"], "kernel_us": row["kernel_time(us)"],
        "kernels_us": {kind: float(part["sum (us)"].sum()) for kind, part in own.groupby("kernel_type")},
        "overlap_percent": float(overlap[overlap["rank"] == rank]["comp_comm_overlap_pctg"].iloc[0]),
        "streams": int(idle["stream"].nunique())}
print(json.dumps({"ranks": ranks}))
