"""The published tables, and how far predictions are from them. Standard library only."""

import csv
import json
import os
import statistics


class NoData(Exception):
    pass


def folder():
    shared = os.environ.get("MEMWALL_SHARED", "")
    path = os.path.join(shared, "data", "published")
    if not shared or not os.path.isdir(path):
        raise NoData("MEMWALL_SHARED does not name a folder with data/published")
    return path


def rows(table):
    """Rows of a table as dictionaries. Lines that begin with # say where it comes from."""
    with open(os.path.join(folder(), table), newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def liger(kernel, mode, gpu="NVIDIA A100-SXM4-80GB", provider="huggingface"):
    """(x, settings, seconds) of one kernel of the Liger benchmark. `mode`: forward, backward or full."""
    return [
        (int(r["x_value"]), r["x_name"], json.loads(r["extra_benchmark_config_str"]), float(r["y_value_50"]) * 1e-3)
        for r in rows("liger_kernel_microbench_a100_h100_b200.csv")
        if r["kernel_name"] == kernel and r["kernel_operation_mode"] == mode and r["gpu_name"] == gpu
        and r["kernel_provider"] == provider and r["metric_name"] == "speed"
    ]


def errors(pairs):
    """|predicted / measured - 1| of every pair, ascending."""
    return sorted(abs(predicted / measured - 1) for predicted, measured in pairs)


def median_and_p90(pairs):
    e = errors(pairs)
    return statistics.median(e), e[min(len(e) - 1, int(0.9 * len(e)))]
