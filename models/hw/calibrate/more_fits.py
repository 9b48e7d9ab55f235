"""Machines beyond A100, H100, H200 and V100: what the tables have of them, or of a card with the same die; the rest is
assumed, and says so. fit.py's own functions write what all machines have in common."""

import os

import attention_fits
import gpu_fits
from machine_text import MachineText

# name: (table of gpu-benches, bandwidth of the card in that table) of streaming kernels; None = no table, the file's own
# assumption stays. A40 and L40 are the dies of RTX 3090 and L40S, with slower memory than the former.
STREAM = {"h100-pcie-80gb": ("h100_pcie", None), "gh200-480gb": ("gh200", None), "l40s": ("l40", None),
          "rtx-3090": ("a40", 696e9), "mi300x": ("mi300x", None), "a100-pcie-80gb": None, "rtx-4090": None, "t4": None,
          "b200-sxm-180gb": None}
# name: (variant of small kernels, table of the L2's bandwidth, benchmark there, L2 of that card)
CACHES = {"l40s": ("l40_graph", "l40", 96 * 2**20), "rtx-3090": ("a40_graph", "a40", 6 * 2**20)}
PRODUCTS = {"a100-pcie-80gb": {"bf16": "A100 PCIe"}, "b200-sxm-180gb": {"bf16": "B200 SXM", "fp8": "B200 SXM"},
            "mi300x": {"bf16": "MI300X"}}
ELEMENT = {"bf16": 2, "fp8": 1}
# Of cards without a table of products: main loops, and the latency of memory where no table has that either.
ASSUMED_LOOP = {"rtx-3090": 0.85, "t4": 0.6}
MEASURED_LOOP = {"rtx-4090": (0.985, "assumption: product of 8,192 in xytpai/gpuk's README, 163.5 of 165.2 TFLOP/s; "
                              "the card clocks beyond its data sheet"),
                 "l40s": (0.54, "assumption: product of 8,192 in bf16 at the clock that 350 W leave, 194.6 of 362 "
                          "TFLOP/s (a public list of saturated GPUs)")}
ASSUMED_LATENCY = {"b200-sxm-180gb": 400e-9, "rtx-4090": 300e-9, "t4": 300e-9}
LATENCY = {"h100-pcie-80gb": "h100_pcie", "gh200-480gb": "gh200", "l40s": "l40", "rtx-3090": "a40", "mi300x": "mi300x",
           "a100-pcie-80gb": "a100_80"}
LIKE = {"h100-pcie-80gb": "hopper", "gh200-480gb": "hopper", "a100-pcie-80gb": "a100"}
ATTENTION = {"h100-pcie-80gb": "hopper", "gh200-480gb": "hopper", "a100-pcie-80gb": "a100", "l40s": "a100",
             "rtx-3090": "a100", "rtx-4090": "a100"}
# Machines of which only attention is written here; what is measured of the same die stays assumed.
ATTENTION_ONLY = {"a100-pcie-40gb": "a100", "a800-sxm-80gb": "a100", "a10": "a100", "a10g": "a100", "l4": "a100",
                  "rtx-6000-ada": "a100", "rtx-a5000": "a100", "rtx-a6000": "a100", "h100-sxm-96gb-hbm2e": "hopper",
                  "h800-sxm-80gb": "hopper", "h20-96gb": "hopper"}
SAME_DIE = ("a800-sxm-80gb", "h100-sxm-96gb-hbm2e", "h800-sxm-80gb")  # and clocks, as the GPU in the table


def load(folder):
    paths = {name: os.path.join(folder, name + ".textproto") for name in STREAM}
    return {name: MachineText(path) for name, path in paths.items() if os.path.exists(path)}


def stream_share(m, name):
    if STREAM[name] is None:
        return m.value("gpu.efficiency.memory.memory_share")
    table, bandwidth = STREAM[name]
    return gpu_fits.stream(table) / (bandwidth or m.value("gpu.hbm.bandwidth"))


def plateau(table, l2, low=0.25, high=0.6):
    """Bandwidth of working sets that an L2 of `l2` bytes holds, B/s: shared ones, or private ones of all together."""
    found = [float(r["GBps"]) for r in gpu_fits.rows("gpubenches_cache_bandwidth.csv")
             if r["gpu"] == table and r["bench"] == "gpu-l2-cache" and low * l2 <= 1024 * float(r["total_kB"]) <= high * l2]
    return gpu_fits.statistics.median(found) * 1e9 if found else None


def set_caches(m, name, report, script, fit):
    if name in ("h100-pcie-80gb", "l40s"):
        table = {"h100-pcie-80gb": "h100_pcie", "l40s": "l40"}[name]
        m.set("gpu.l2_bandwidth", "%.3g TB/s" % (plateau(table, m.value("gpu.l2_capacity")) / 1e12),
              "median of gpubenches_cache_bandwidth.csv, gpu-l2-cache, %s, a quarter to 0.6 of the L2; %s" % (table, script))
    if name not in CACHES:
        return
    variant, table, size = CACHES[name]
    l2 = m.value("gpu.l2_bandwidth")
    hbm = {"l40": 864e9, "a40": 696e9}[table]
    r = gpu_fits.residency(variant, size, l2, hbm, report)
    m.make("gpu.residency")
    source = fit("gpubenches_small_kernels.csv, %s" % variant, r["p90"])
    m.set("gpu.residency.kept", "%.3g" % r["kept"], source)
    m.set("gpu.residency.lost", "%.3g" % r["lost"], source)
    m.set("gpu.residency.streaming_share", "%.3g" % r["streaming"], source)
    m.set("gpu.residency.residual", "%.3g" % r["p90"], source)
    for c in ("other", "normalization", "elementwise", "reduction", "optimizer", "embedding", "memory"):
        m.set("gpu.efficiency.%s.fixed" % c, "%.3g us" % (r["fixed"] * 1e6),
              "shortest kernel of gpubenches_small_kernels.csv, %s; %s" % (variant, script))


def latency(name):
    if name in ASSUMED_LATENCY:
        return ASSUMED_LATENCY[name], "assumption: one trip to memory before the loop and one after it, %d ns each" % (
            ASSUMED_LATENCY[name] * 1e9)
    return gpu_fits.dram_latency(LATENCY[name]), \
        "assumption: one trip to memory before the loop and one after it; latency from gpubenches_latency.csv, %s" % LATENCY[name]


def units(m, name):
    return {"compute_major": m.value("gpu.compute_major"), "multiprocessors": int(m.value("gpu.multiprocessors")),
            "l2": m.value("gpu.l2_bandwidth"), "hbm": m.value("gpu.hbm.bandwidth"), "start_up": 2 * latency(name)[0],
            "fixed": m.value("gpu.efficiency.gemm.fixed"), "small": m.value("gpu.efficiency.elementwise.fixed")}


def main_loops(m, name, fits, report, fit):
    """(share, source) by data type."""
    if name in PRODUCTS:
        found = {}
        for dtype, accelerator in PRODUCTS[name].items():
            gpu = dict(units(m, name), peak=m.value("gpu.peak.%s.rate" % dtype))
            share, p90 = gpu_fits.matrix_hopper(gpu, [accelerator], dtype, ELEMENT[dtype], report)
            found[dtype] = share, fit("mamf_gemm_tflops.csv, %s" % accelerator, p90)
        share = found["bf16"][0]
    elif LIKE.get(name) == "hopper":
        share = fits.matrix["hopper"][0]
        found = {"bf16": (share, "assumption: as H100 and GH200 (%s)" % fit("mamf_gemm_tflops.csv")),
                 "fp8": (fits.matrix["hopper fp8"][0], "assumption: as H100, H200 and GH200 (%s)" % fit("mamf_gemm_tflops.csv"))}
    elif name in MEASURED_LOOP:
        share = MEASURED_LOOP[name][0]
        found = {"fp16": MEASURED_LOOP[name]}
    else:
        share = ASSUMED_LOOP[name]
        found = {"fp16": (share, "assumption: cuBLAS on tensor cores, between A100 (0.92) and what power allows")}
    listed = [t for t in ("fp16", "bf16", "tf32", "fp8") if has_peak(m, t)]
    return {t: found.get(t, (share, "assumption: as the other types of this GPU")) for t in listed}


def has_peak(m, data_type):
    try:
        return m.value("gpu.peak.%s.rate" % data_type) > 0
    except KeyError:
        return False


def set_matrix(m, name, fits, report, fit):
    m.make("gpu.matrix")
    for t, (share, source) in main_loops(m, name, fits, report, fit).items():
        m.make("gpu.matrix.main_loop." + t, "data_type")
        m.set("gpu.matrix.main_loop.%s.share" % t, "%.3g" % share, source)
    m.make("gpu.matrix.main_loop.fp32", "data_type")
    m.set("gpu.matrix.main_loop.fp32.share", "%.3g" % fits.fp32[0], "assumption: as A100 (%s)" % fit(gpu_fits.FP32_TABLE))
    (forward, backward), _ = fits.convolution
    text = "assumption: as H100 (%s)" % fit(gpu_fits.VGG13)
    m.set("gpu.matrix.convolution_share", "%.3g" % forward, text)
    m.set("gpu.matrix.convolution_backward_share", "%.3g" % backward, text)
    m.set("gpu.efficiency.convolution.residual", "0.3", "assumption: no table of convolutions on this GPU")
    seconds, source = latency(name)
    m.set("gpu.matrix.start_up", "%.3g us" % (2e6 * seconds), source)
    m.set_curve("gpu.matrix.alignment", ["2 B: 0.5", "4 B: 0.65", "8 B: 0.85", "16 B: 1"],
                "assumption: narrower loads than 16 B cost issue slots (NVIDIA, Matrix multiplication background)")
    m.set("gpu.matrix.residual", "0.3", "assumption: at most one product of this GPU is published")


def set_attention(m, name, fits, fit):
    if name == "b200-sxm-180gb":
        return attention_fits.set_blackwell(m, fits.attention)
    generation = ATTENTION.get(name) or ATTENTION_ONLY.get(name)
    if generation is None:
        return
    gpu = {"a100": "A100", "hopper": "H100"}[generation]
    attention_fits.set_kernels(m, fits.attention, generation, lambda table, _: "assumption: as %s (%s)" % (gpu, fit(table)),
                               None if name in SAME_DIE else
                               ("0.3", "assumption: other clocks and memory than the GPU in the table"))
