"""How well the fabrics of the machine files, fitted by hand earlier, price the published all-reduces."""

import math

from machine_text import parse, quantity
from published import median_and_p90, rows


def curve(m, path):
    block = parse(m.text).find(path.rpartition(".")[0])
    for name, value in block.fields:
        if name == "efficiency":
            points = [v.strip('"').split(":") for n, v in value.fields if n == "point"]
            return [(quantity(a.strip()), quantity(b.strip())) for a, b in points]
    return []


def at(points, size):
    if not points or size >= points[-1][0]:
        return points[-1][1] if points else 1.0
    if size <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if size <= x1:
            return y0 + (y1 - y0) * (math.log2(size) - math.log2(x0)) / (math.log2(x1) - math.log2(x0))
    return points[-1][1]


def all_reduce(m, fabric, ranks, size):
    value = lambda key: m.value("fabric.%s.%s" % (fabric, key))
    wire = 2 * (ranks - 1) / ranks * size
    share = at(curve(m, "fabric.%s.efficiency" % fabric), size)
    return value("base_latency") + 2 * (ranks - 1) * value("step_latency") + wire / (value("bus_bandwidth") * share)


def measured(name):
    """(fabric, ranks, bytes, s) of the tables that a machine's fabrics were fitted to."""
    nccl = {"h100": "8xH200 NVLink4 NVSwitch", "h200": "8xH200 NVLink4 NVSwitch"}.get(name[:4])
    found = [("nvlink", 8, float(r["bytes"]), float(r["time_us"]) * 1e-6) for r in rows("nccl_collectives_busbw.csv")
             if r["hardware"] == nccl and r["collective"] == "all_reduce" and float(r["bytes"]) >= 32768]
    return found


def set_residuals(m, name, report, script):
    table = measured(name)
    for fabric in sorted({f for f, _, _, _ in table}):
        pairs = [(all_reduce(m, f, n, size), s) for f, n, size, s in table if f == fabric]
        p90 = report.add("all-reduce over %s, %s" % (fabric, name), pairs)
        m.set("fabric.%s.residual" % fabric, "%.3g" % p90,
              "p90 of the error of the all-reduces of nccl_collectives_busbw.csv; %s" % script)
