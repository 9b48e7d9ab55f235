"""Records of matrix products, and what products sustain in jobs that train for hours (models/hw/gemm_cost.h)."""

from published import rows

TABLE = "mamf_gemm_tflops.csv"
# Machine files by the accelerator that the table has; the H200's row of bf16 is the H100's.
ACCELERATOR = {"a100-sxm-40gb": "A100 SXM", "a100-sxm-80gb": "A100 SXM", "a800-sxm-80gb": "A100 SXM",
               "a100-pcie-80gb": "A100 PCIe", "a100-pcie-40gb": "A100 PCIe", "h100-sxm-80gb": "H100 SXM",
               "h100-sxm-80gb-cxl": "H100 SXM", "h800-sxm-80gb": "H100 SXM", "h100-sxm-96gb-hbm2e": "H100 SXM",
               "h200-sxm-141gb": "H200 SXM", "gh200-480gb": "GH200 SXM", "b200-sxm-180gb": "B200 SXM",
               "mi300x": "MI300X", "mi325x": "MI325X", "h100-pcie-80gb": None}
AS_H100 = ("h200-sxm-141gb",)
TYPES = {"bf16": ("bf16", "fp16"), "fp8": ("fp8",)}
# Time of products beside the burst's, in the fitted halves of published jobs (memwall validate --published --fit with no
# sustained_share): InternEvo 1.10 and 1.05, torchtitan 1.09 on eight A100, torchtune 1.00 on one; torchtitan 1.41 and
# llm-foundry 1.44 on H100. On Hopper the power limit is reached by products alone, on A100 nearly.
SUSTAINED = {"a100": (0.81, "InternEvo, torchtitan and torchtune, A100"), "hopper": (0.6, "torchtitan and llm-foundry, H100")}
GENERATION = {"a100-sxm-40gb": "a100", "a100-sxm-80gb": "a100", "a800-sxm-80gb": "a100", "h100-sxm-80gb": "hopper",
              "h100-sxm-80gb-cxl": "hopper", "h800-sxm-80gb": "hopper", "h100-sxm-96gb-hbm2e": "hopper",
              "h200-sxm-141gb": "hopper", "gh200-480gb": "hopper", "a100-pcie-80gb": "a100", "a100-pcie-40gb": "a100",
              "h100-pcie-80gb": "hopper", "b200-sxm-180gb": "hopper"}
# Of other power than the GPUs in those jobs, or another die: their share is assumed to fall as much.
ASSUMED = ("a100-pcie-80gb", "a100-pcie-40gb", "h100-pcie-80gb", "b200-sxm-180gb")
BURST = {"a100": 0.85, "hopper": 0.855}


def record(accelerator, data_type):
    found = [float(r["mamf_tflops"]) for r in rows(TABLE)
             if r["dtype"] == data_type and r["accelerator"].startswith(accelerator)]
    return max(found, default=None)


def set_products(m, name):
    accelerator = ACCELERATOR.get(name)
    for measured, types in TYPES.items():
        row = "H100 SXM" if name in AS_H100 and measured == "bf16" else accelerator
        best = row and record(row, measured)
        for data_type in types:
            path = "gpu.matrix.main_loop.%s" % data_type
            if not m.has(path):
                continue
            if best:
                m.set(path + ".record", "%.5g TFLOP/s" % best,
                      "%s, %s in %s" % (TABLE, row, measured) if data_type == measured else
                      "assumption: as %s (%s, %s)" % (measured, TABLE, row))
            if name in GENERATION and data_type in ("bf16", "fp16", "fp8"):
                share, source = SUSTAINED[GENERATION[name]]
                if name in ASSUMED:
                    share *= m.value(path + ".share") / BURST[GENERATION[name]]
                    source = "assumption: beside short runs as %s" % source
                m.set(path + ".sustained_share", "%.3g" % share,
                      "%s%s%s" % ("" if name in ASSUMED else "fitted halves of published jobs: ", source, "" if data_type != "fp8" else "; assumption: as bf16"))
