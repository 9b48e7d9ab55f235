"""Opens memory snapshots with PyTorch's own torch/cuda/_memory_viz.py, every view of it, and prints as JSON what it read.
torch itself is not imported: only that file of it is needed.

Usage: memory_viz_views.py SNAPSHOT OTHER"""

import contextlib
import importlib.util
import io
import json
import pathlib
import pickle
import sys

torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
spec = importlib.util.spec_from_file_location("memory_viz", torch / "cuda" / "_memory_viz.py")
viz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(viz)

one, other = (pickle.loads(pathlib.Path(name).read_bytes()) for name in sys.argv[1:3])
text = lambda lines: lines  # in place of flamegraph.pl, which it would download
trace = viz.trace(one)
segments = viz.segsum(one)  # adds up every segment, and raises where sums differ
told = io.StringIO()
with contextlib.redirect_stdout(told):
    difference = viz.compare(one["segments"], other["segments"], format_flamegraph=text)
print(json.dumps({
    "entries": [len(device) for device in one["device_traces"]],
    "mallocs": trace.count("= cudaMalloc("), "frees": trace.count("\ndel "),
    "reserved": sum(segment["total_size"] for segment in one["segments"]),
    "allocated": sum(segment["allocated_size"] for segment in one["segments"]),
    "segments_line": [line for line in segments.splitlines() if line.startswith("segments:")][0],
    "trace_plot": "Active Memory Timeline" in viz.trace_plot(one),
    "segment_plot": "Allocator State History" in viz.segment_plot(one),
    "cached_plot": "Active Cached Memory Timeline" in viz.trace_plot(one, plot_segments=True),
    "memory": viz.memory(one, format_flamegraph=text).count("active_allocated"),
    "segments": viz.segments(one, format_flamegraph=text).count("seg_"),
    "only_after": told.getvalue().count("only_after = ["), "difference": difference.count("\n")}))
