#!/usr/bin/env python3
"""Fits the numbers of models/hw/kernel_cost.h to published component tables and writes them into the machine files.

    MEMWALL_SHARED=... fit.py            writes ../machines/*.textproto, prints points and residuals of every curve
    MEMWALL_SHARED=... fit.py --check    writes nothing; exit 1 if a file does not hold what the tables give
    exit 77                              no tables: nothing to fit or check

No table of whole steps is read; what products sustain in long jobs (product_fits.py) was read off the fitted halves of
published jobs. What no table has is an assumption, and its source says so.
"""

import argparse
import os
import sys

import attention_fits
import curve_fits
import fabric_fits
import framework_fits
import gpu_fits
import more_fits
import product_fits
from gpu_fits import LIGER, Report
from machine_text import MachineText
from published import NoData

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = "models/hw/calibrate/fit.py"
# Of classes that no table has; how far a share moves between GPU generations is nobody's measurement.
ASSUMED, BETWEEN_GENERATIONS = 0.3, 0.2
# The tables have large products, and few of the kernels that PyTorch has: added for other ones (nobody's measurement;
# the rotary embedding that is held out is 40 % off).
OTHER_SHAPES, OTHER_KERNELS = 0.1, 0.2


# Share of a product's rate by the bytes that its rows are multiples of.
NARROW_LOADS = (["2 B: 0.5", "4 B: 0.65", "8 B: 0.85", "16 B: 1"],
                "assumption: narrower loads than 16 B cost issue slots (NVIDIA, Matrix multiplication background)")
ALIGNMENT = {
    "a100-sxm-80gb": (
        ["2 B: 0.5", "4 B: 0.55", "8 B: 0.6", "16 B: 0.65", "128 B: 1"],
        "NVIDIA, Matrix multiplication background: on A100 most efficient with rows of multiples of 128 B; how much: "
        "fitted half of bloom176b_prequel_a100_grid.csv, widths of 14,400 over 8 ranks (16 B) beside 13,824 and 14,336 "
        "(128 B); assumption: narrower loads than 16 B cost issue slots"),
}


def share(value):
    return "%.3g" % value


def time(value):
    return "%.3g us" % (value * 1e6)


def fitted(table, p90=None):
    return "fit by %s to %s" % (SCRIPT, table) + (": p90 of the error %.1f %%" % (100 * p90) if p90 is not None else "")


class Fits:
    """Everything that is common to the machines of a generation."""

    def __init__(self, machines):
        self.report = r = Report()
        hbm = machines["a100-sxm-80gb"].value("gpu.hbm.bandwidth")
        self.l2 = {"a100": gpu_fits.l2_bandwidth("a100_80"), "hopper": gpu_fits.l2_bandwidth("h200")}
        self.latency = {"a100": gpu_fits.dram_latency("a100_80"), "hopper": gpu_fits.dram_latency("gh200"),
                        "v100": gpu_fits.dram_latency("v100")}
        self.residency = {
            "a100": gpu_fits.residency("a100_80_graph", 40 * 2**20, self.l2["a100"], hbm, r),
            "hopper": gpu_fits.residency("h200_graph", 50 * 2**20, self.l2["hopper"],
                                         machines["h200-sxm-141gb"].value("gpu.hbm.bandwidth"), r)}
        fixed = self.residency["a100"]["fixed"]
        self.stream = {name: gpu_fits.stream(table) / machines[name].value("gpu.hbm.bandwidth")
                       for name, table in (("a100-sxm-40gb", "a100_40"), ("a100-sxm-80gb", "a100_80"),
                                           ("h200-sxm-141gb", "h200"), ("v100-sxm2-16gb", "v100"),
                                           ("v100-sxm2-32gb", "v100"), ("v100-sxm3-32gb", "v100"),
                                           ("v100-sxm3-32gb-512gpu", "v100"))}
        # The memory of the GH200 in the table is 4 TB/s of HBM3, as the H100's of 3.35 TB/s.
        self.stream["h100-sxm-80gb"] = self.stream["h100-sxm-80gb-cxl"] = gpu_fits.stream("gh200") / 4.0e12
        self.elementwise = gpu_fits.elementwise(hbm, fixed, r)
        self.normalization = gpu_fits.normalization(hbm, fixed, r)
        self.reduction = gpu_fits.reduction(hbm, fixed, r)
        self.embedding = gpu_fits.embedding(hbm, fixed, r)
        self.matrix = {
            "a100": gpu_fits.matrix_a100(self.units(machines["a100-sxm-80gb"], "a100"), hbm * self.elementwise[0], r),
            "hopper": gpu_fits.matrix_hopper(self.units(machines["h100-sxm-80gb"], "hopper"),
                                             ["H100 SXM (=H200)", "GH200 SXM 141GB"], "bf16", 2, r),
            "hopper fp8": gpu_fits.matrix_hopper(dict(self.units(machines["h100-sxm-80gb"], "hopper"), peak=machines[
                "h100-sxm-80gb"].value("gpu.peak.fp8.rate")), ["H100 SXM", "H200 SXM", "GH200 SXM"], "fp8", 1, r)}
        h100 = machines["h100-sxm-80gb"]
        tf32 = dict(self.units(h100, "hopper"), peak=h100.value("gpu.peak.tf32.rate"), streaming=self.stream["h100-sxm-80gb"])
        self.convolution = gpu_fits.convolution(tf32, self.matrix["hopper"][0], r)
        plain = machines["a100-sxm-40gb"]
        self.fp32 = gpu_fits.matrix_fp32(dict(self.units(plain, "a100"), peak=plain.value("gpu.peak.fp32.rate")), r)
        self.attention = attention_fits.fit_all({"a100": machines["a100-sxm-80gb"], "hopper": machines["h100-sxm-80gb"]}, r)
        self.framework = framework_fits.fit()
        for generation, host in self.framework.items():
            for phase in ("forward", "backward"):
                mean, count = host[phase]
                r.lines.append("%-58s %4d points, mean %.1f us, %.1f us per recorded event taken off" % (
                    "host time of an eager operator, %s (host of %s)" % (phase, generation), count, mean * 1e6,
                    host["event"] * 1e6))
        r.add("held out: rotary embedding, A100 (Liger), as elementwise",
              gpu_fits.rope_pairs(hbm, self.elementwise[0], fixed))

    def units(self, machine, generation):
        return {"compute_major": machine.value("gpu.compute_major"),
                "multiprocessors": int(machine.value("gpu.multiprocessors")),
                "peak": machine.value("gpu.peak.fp16.rate"), "l2": self.l2[generation],
                "hbm": machine.value("gpu.hbm.bandwidth"), "start_up": 2 * self.latency[generation],
                "fixed": machine.value("gpu.efficiency.gemm.fixed"),
                "small": machine.value("gpu.efficiency.elementwise.fixed")}


def set_caches(m, f, generation):
    if generation == "v100":
        return
    r, name = f.residency[generation], {"a100": "A100 80 GB", "hopper": "H200"}[generation]
    m.set("gpu.l2_bandwidth", "%.3g TB/s" % (f.l2[generation] / 1e12),
          "median of gpubenches_cache_bandwidth.csv, gpu-l2-cache, %s, 2 to 16 MB; %s" % (name, SCRIPT))
    m.make("gpu.residency")
    source = fitted("gpubenches_small_kernels.csv, %s in a CUDA graph" % name, r["p90"])
    m.set("gpu.residency.kept", share(r["kept"]), source)
    m.set("gpu.residency.lost", share(r["lost"]), source)
    m.set("gpu.residency.streaming_share", share(r["streaming"]), source)
    m.set("gpu.residency.residual", share(r["p90"]), source)


def set_matrix(m, f, name, generation):
    m.make("gpu.matrix")
    add = lambda t: m.make("gpu.matrix.main_loop." + t, "data_type")
    put = lambda t, value, source: (add(t), m.set("gpu.matrix.main_loop.%s.share" % t, share(value), source))
    if generation == "v100":
        value, residual = 0.75, (ASSUMED, "assumption: no table of products on V100")
        put("fp16", value, "assumption: cuBLAS on tensor cores; Jia et al. 2018 measured 83 of 112 TFLOP/s on a PCIe V100")
    else:
        value, p90 = f.matrix[generation]
        table = "mamf_gemm_tflops.csv" + (" and gated MLPs of " + LIGER if generation == "a100" else "")
        residual = ((p90**2 + OTHER_SHAPES**2) ** 0.5,
                    fitted(table, p90) + ", of large products; assumption: a tenth more for other shapes")
        for t in ("fp16", "bf16"):
            put(t, value, fitted(table, p90))
        put("tf32", value, "assumption: as bf16")
    if generation == "hopper":
        put("fp8", f.matrix["hopper fp8"][0], fitted("mamf_gemm_tflops.csv", f.matrix["hopper fp8"][1]))
    value, p90 = f.fp32
    text = fitted(gpu_fits.FP32_TABLE, p90) + ", where batched products of narrow matrices take wider tiles than priced"
    put("fp32", value, text if generation == "a100" else "assumption: as A100 (%s)" % text)
    (forward, backward), p90 = f.convolution
    text = fitted(gpu_fits.VGG13 + " (Kineto, kernels of 18 convolutions in TF32)", p90)
    text = text if generation == "hopper" else "assumption: as H100 (%s)" % text
    m.set("gpu.matrix.convolution_share", share(forward), text)
    m.set("gpu.matrix.convolution_backward_share", share(backward), text)
    m.set("gpu.efficiency.convolution.residual", share((p90**2 + OTHER_KERNELS**2) ** 0.5),
          text + "; assumption: a fifth more for other kernels")
    m.set("gpu.matrix.start_up", time(2 * f.latency[generation]),
          "assumption: one trip to memory before the loop and one after it; latency from gpubenches_latency.csv")
    m.set_curve("gpu.matrix.alignment", *ALIGNMENT.get(name, NARROW_LOADS))
    m.set("gpu.matrix.residual", share(residual[0]), residual[1])


def set_classes(m, f, name, generation):
    """Shares of HBM's bandwidth by class: A100 80 GB's, elsewhere in proportion to streaming kernels."""
    scale = f.stream[name] / f.stream["a100-sxm-80gb"]
    measured = name == "a100-sxm-80gb"

    def put(operator_class, key, value, table, p90):
        text = fitted(table, p90) if measured else \
            "assumption: as A100 80 GB (%s), in proportion to streaming kernels" % fitted(table)
        m.set("gpu.efficiency.%s.%s" % (operator_class, key), share(min(1.0, value * scale)), text)

    def residual(operator_class, p90, table, others=0.0):
        value = (p90**2 + others**2 + (0 if measured else BETWEEN_GENERATIONS**2)) ** 0.5
        text = fitted(table, p90) if measured else "assumption: A100's and a fifth between generations"
        m.set("gpu.efficiency.%s.residual" % operator_class, share(value),
              text + ("; assumption: a fifth more for other kernels" if others else ""))

    table = "%s, eager RMSNorm" % LIGER
    for c in ("elementwise", "other"):
        put(c, "memory_share", f.elementwise[0], table, f.elementwise[1])
        residual(c, f.elementwise[1], table, OTHER_KERNELS)
    shares, p90 = f.normalization
    table = "%s, layer_norm" % LIGER
    put("normalization", "memory_share", shares["forward"], table, p90)
    put("normalization", "backward_share", shares["backward"], table, p90)
    residual("normalization", p90, table)
    red = f.reduction
    table = "%s, cross_entropy" % LIGER
    put("reduction", "memory_share", red["narrow"], table, red["p90"])
    put("reduction", "backward_share", min(1.0, red["backward"] / red["wide"] * red["narrow"]), table, red["p90"])
    m.set_curve("gpu.efficiency.reduction.width", ["64 KiB: 1", "128 KiB: %s" % share(red["wide"] / red["narrow"])],
                fitted(table, red["p90"]) if measured else "assumption: as A100 80 GB (%s)" % fitted(table))
    residual("reduction", red["p90"], table)
    (forward, backward), p90 = f.embedding
    table = "%s, embedding" % LIGER
    put("embedding", "memory_share", forward, table, p90)
    put("embedding", "backward_share", backward, table, p90)
    residual("embedding", p90, table)
    streaming = "best scale of gpubenches_stream.csv over the data sheet; %s" % SCRIPT
    if name.startswith("h100-sxm-80gb"):
        streaming = "assumption: as GH200's HBM3, " + streaming
    for c in ("optimizer", "memory", "gemm"):
        m.set("gpu.efficiency.%s.memory_share" % c, share(f.stream[name]), streaming)
    for c in ("optimizer", "memory", "gemm", "attention"):
        m.set("gpu.efficiency.%s.residual" % c, share(ASSUMED), "assumption: no table of such kernels by size")
    for c in ("gemm", "convolution", "attention"):
        fixed = m.value("gpu.efficiency.%s.fixed" % c)
        assert fixed > 0


def set_framework(m, f, generation):
    allocator = m.value("host.calls.allocator")
    m.make("host.calls.framework")
    for phase in ("forward", "backward"):
        text = "fit by %s to Kineto captures of DLRM on V100: mean less the profiler's events and an allocation" % SCRIPT
        m.set("host.calls.framework.eager_" + phase, time(f.framework["v100"][phase][0] - allocator),
              text if generation == "v100" else "assumption: as on the host of V100 (%s); a capture of A100 has %s with the "
              "text of NVTX ranges" % (text, time(f.framework["a100"][phase][0] - allocator)))
    m.set("host.calls.framework.eager_optimizer", "20 us", "assumption: one multi-tensor call with lists of some hundred tensors")
    m.set("host.calls.framework.compiled_call", "3 us", "assumption: the launcher of one compiled kernel, called from Python")
    m.set("host.calls.framework.residual", "0.7", "assumption: 1.645 times the root mean square of ln 1.08 and ln 1.85, by which the "
          "programs of two published tables on A100 are fitted to be slower (docs/accuracy.md)")


GENERATION = {"a100-sxm-40gb": "a100", "a100-sxm-80gb": "a100", "h100-sxm-80gb": "hopper", "h100-sxm-80gb-cxl": "hopper",
              "h200-sxm-141gb": "hopper", "v100-sxm2-16gb": "v100", "v100-sxm2-32gb": "v100", "v100-sxm3-32gb": "v100",
              "v100-sxm3-32gb-512gpu": "v100"}
# Of machines that have only their curves fitted.
CURVES_ONLY = ("mi250", "b200-sxm-180gb")


def fit_more(folder, f):
    machines = more_fits.load(folder)
    for name, m in machines.items():
        f.stream[name] = more_fits.stream_share(m, name)
        more_fits.set_caches(m, name, f.report, SCRIPT, fitted)
        untabled = {c: m.source("gpu.efficiency.%s.memory_share" % c) for c in ("optimizer", "memory", "gemm")}
        set_classes(m, f, name, "other")
        for c, source in untabled.items():
            if more_fits.STREAM[name] is None:
                m.set("gpu.efficiency.%s.memory_share" % c, share(f.stream[name]), source)
        more_fits.set_matrix(m, name, f, f.report, fitted)
        more_fits.set_attention(m, name, f, fitted)
        set_framework(m, f, "other")
    for name in more_fits.ATTENTION_ONLY:
        machines[name] = MachineText(os.path.join(folder, name + ".textproto"))
        more_fits.set_attention(machines[name], name, f, fitted)
    return machines


def fit(folder):
    machines = {name: MachineText(os.path.join(folder, name + ".textproto")) for name in GENERATION
                if os.path.exists(os.path.join(folder, name + ".textproto"))}
    f = Fits(machines)
    for name, m in machines.items():
        generation = GENERATION[name]
        set_caches(m, f, generation)
        set_matrix(m, f, name, generation)
        if generation != "v100":
            attention_fits.set_kernels(m, f.attention, generation, fitted)
        set_classes(m, f, name, generation)
        set_framework(m, f, generation)
        fabric_fits.set_residuals(m, name, f.report, SCRIPT)
    machines.update(fit_more(folder, f))
    for name in CURVES_ONLY:
        machines[name] = machines.get(name) or MachineText(os.path.join(folder, name + ".textproto"))
    for name in product_fits.ACCELERATOR:
        machines[name] = machines.get(name) or MachineText(os.path.join(folder, name + ".textproto"))
    for name, m in machines.items():
        curve_fits.set_all(m, name, f.report, SCRIPT)
        product_fits.set_products(m, name)
    return machines, f.report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--machines", default=os.path.join(HERE, "..", "machines"))
    arguments = parser.parse_args()
    try:
        machines, report = fit(arguments.machines)
    except NoData as reason:
        print("%s: nothing is fitted." % reason)
        return 77
    print("\n".join(report.lines))
    changed = sorted(name for name, m in machines.items() if m.changed())
    if arguments.check:
        for name in changed:
            print("%s.textproto does not hold what the tables give; run %s without --check." % (name, SCRIPT))
        return 1 if changed else 0
    for name in changed:
        machines[name].write()
    print("written: %s" % (", ".join(changed) or "nothing, all as fitted"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
