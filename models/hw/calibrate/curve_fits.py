"""Curves by size: what caches give, what a load takes, how long a collective is. Which rows they are fitted to stands in
the machine files themselves (calibration { ... }); what those hold out is not read here.

A curve is as few of the measured points as keep linear interpolation over log2(size) within TOLERANCE of all of them.
"""

import math
import statistics

from fabric_fits import at
from machine_text import parse, quantity
from published import median_and_p90, rows

TOLERANCE, MOST_POINTS = 0.03, 24
CURVES = {"private_read": ("gpu.private_read_bandwidth", "dataset_kB", "GBps", 1e9),
          "shared_read": ("gpu.shared_read_bandwidth", "total_kB", "GBps", 1e9),
          "load_latency": ("gpu.load_latency", "working_set_kB", "latency_ns", 1e-9)}
# NCCL src/graph/tuning.cc: base latency of the Simple protocol, and what in-switch reduction adds to it.
BASE, IN_SWITCH = 8.4e-6, 25e-6


def entries(m):
    """calibration { ... } blocks as dictionaries; `where` as (column, text) pairs."""
    found = []
    for name, block in parse(m.text).fields:
        if name != "calibration":
            continue
        entry = {"where": []}
        for key, value in block.fields:
            text = value.strip('"') if isinstance(value, str) else quantity(dict(value.fields)["value"].strip('"'))
            if key == "where":
                entry["where"].append(tuple(text.split("=", 1)))
            else:
                entry[key] = text
        found.append(entry)
    return found


def chosen(entry):
    kept = [r for r in rows(entry["table"]) if all(r.get(c) == t for c, t in entry["where"])]
    part = entry.get("rows", "all")
    return kept if part == "all" else kept[0 if part == "even" else 1::2]


def inside(entry, size):
    return entry.get("smallest", 0) <= size <= entry.get("largest", math.inf)


def thinned(points):
    """`points` (size, value), one per size: the ends, then whichever is worst, until all are near."""
    by_size = {}
    for size, value in points:
        by_size.setdefault(size, []).append(value)
    points = sorted((size, statistics.median(values)) for size, values in by_size.items())
    kept = {0, len(points) - 1}
    while len(kept) < min(MOST_POINTS, len(points)):
        curve = [points[i] for i in sorted(kept)]
        errors = [abs(at(curve, size) / value - 1) for size, value in points]
        worst = max(range(len(points)), key=lambda i: errors[i])
        if errors[worst] <= TOLERANCE:
            break
        kept.add(worst)
    return [points[i] for i in sorted(kept)]


def size_text(size):
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return "%.7g %s" % (size / unit, name)
    return "%d B" % size


def value_text(measure, value):
    return "%.4g ns" % (value * 1e9) if measure == "load_latency" else "%.4g GB/s" % (value / 1e9)


def set_curve(m, entry, name, report, script):
    path, size_column, column, unit = CURVES[entry["measure"]]
    points = [(float(r[size_column]) * 1024, float(r[column]) * unit) for r in chosen(entry)]
    points = [p for p in points if inside(entry, p[0])]
    curve = thinned(points)
    p90 = report.add("%s, %s" % (entry["measure"], name), [(at(curve, s), v) for s, v in points])
    m.set_curve(path, ["%s: %s" % (size_text(s), value_text(entry["measure"], v)) for s, v in curve],
                "fit by %s to %s, %s, every second row: p90 of the error %.1f %%" % (
                    script, entry["table"], ", ".join("%s=%s" % w for w in entry["where"]), 100 * p90))


def collective_times(entry):
    """(bytes, ranks, kind, s) of the rows of an entry."""
    found = []
    for r in chosen(entry):
        size, ranks, kind = float(r["bytes"]), int(r["ranks"]), r.get("collective", "all_reduce")
        if r.get("oop_ns"):
            seconds = float(r["oop_ns"]) * 1e-9
        elif r.get("time_us"):
            seconds = float(r["time_us"]) * 1e-6
        else:
            share = {"all_reduce": 2 * (ranks - 1) / ranks, "broadcast": 1, "reduce": 1}.get(kind, (ranks - 1) / ranks)
            seconds = share * size / (float(r["busbw_GBps"]) * 1e9)
        if inside(entry, size):
            found.append((size, ranks, kind, seconds))
    return found


def mean_by_size(times):
    """One row per size: the geometric mean of what several tables say of it."""
    by_size = {}
    for size, ranks, kind, seconds in times:
        by_size.setdefault((size, ranks, kind), []).append(math.log(seconds))
    return [(*key, math.exp(sum(logs) / len(logs))) for key, logs in sorted(by_size.items())]


def set_law(m, all_entries, name, report, script):
    """A fabric, or one law of it, `of` "fabric.law": the largest bus bandwidth, the shortest time, shares in between."""
    entry = all_entries[0]
    fabric, _, law = entry["of"].partition(".")
    path = "fabric.%s.collective.%s" % (fabric, law) if law else "fabric." + fabric
    block = parse(m.text).find(path)
    in_switch = dict((n, v) for n, v in block.fields if isinstance(v, str)).get("algorithm") == "in_switch"
    times = mean_by_size([t for e in all_entries for t in collective_times(e)])
    ranks, kind = times[0][1], times[0][2]
    twice = 2 if kind == "all_reduce" else 1
    factor, steps = twice * (ranks - 1) / ranks, twice * (1 if in_switch else ranks - 1)
    # A little more than any row shows, so that the largest message leaves room for a latency; and no more latency than
    # every row leaves room for.
    bus = 1.02 * max(factor * size / s for size, _, _, s in times)
    latency = 0.95 * min(s - factor * size / bus for size, _, _, s in times)
    base = min(latency, BASE + (IN_SWITCH if in_switch else 0))
    share = thinned([(size, min(1.0, factor * size / (bus * (s - latency)))) for size, _, _, s in times])
    measured = [t for e in all_entries for t in collective_times(e)]
    predicted = [(latency + factor * size / (bus * at(share, size)), s) for size, _, _, s in measured]
    p90 = report.add("collective %s, %s" % (entry["of"], name), predicted)
    tables = " and ".join("%s, %s" % (e["table"], ", ".join("%s=%s" % w for w in e["where"])) for e in all_entries)
    source = "fit by %s to %s, every second row: p90 of the error %.1f %%" % (script, tables, 100 * p90)
    m.set(path + ".bus_bandwidth", "%.4g GB/s" % (bus / 1e9), source)
    m.set(path + ".step_latency", "%.4g us" % ((latency - base) / steps * 1e6), source)
    m.set(path + ".base_latency", "%.4g us" % (base * 1e6), source)
    m.set_curve(path + ".efficiency", ["%s: %.4g" % (size_text(s), v) for s, v in share], source)
    m.set(path + ".residual", "%.3g" % median_and_p90(predicted)[1], source)


def set_all(m, name, report, script):
    laws = {}
    for entry in entries(m):
        if entry.get("held_out") == "true":
            continue
        if entry["measure"] in CURVES:
            set_curve(m, entry, name, report, script)
        elif entry["measure"] == "collective_time" and ("." in entry.get("of", "") or entry.get("rows") == "even"):
            laws.setdefault(entry["of"], []).append(entry)
    for same in laws.values():
        set_law(m, same, name, report, script)
