"""What GPUs reach, fitted to published component tables. No end-to-end row is read here."""

import json
import math
import os
import sqlite3
import statistics

import gemm_model
from published import NoData, liger, median_and_p90, rows

A100_80, H100, H200, V100 = "a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb", "v100-sxm2-32gb"
L2_OF_A100 = 40 * 2**20
LIGER = "liger_kernel_microbench_a100_h100_b200.csv"


class Report:
    """One line per curve: points, median and p90 of |predicted / measured - 1|."""

    def __init__(self):
        self.lines = []

    def add(self, curve, pairs):
        median, p90 = median_and_p90(pairs)
        self.lines.append("%-58s %4d points, residual: median %4.1f %%, p90 %4.1f %%" % (curve, len(pairs), 100 * median, 100 * p90))
        return p90


def best(candidates, pairs_of):
    """The candidate with the least mean |log(predicted / measured)|."""
    def distance(c):
        pairs = pairs_of(c)
        return sum(abs(math.log(p / m)) for p, m in pairs) / len(pairs)
    return min(candidates, key=distance)


def steps(low, high, step):
    return [round(low + i * step, 6) for i in range(int(round((high - low) / step)) + 1)]


# ---- memory hierarchy -------------------------------------------------------------------------------

def stream(gpu, kernel="scale"):
    """Best DRAM bandwidth of gpu-benches' stream kernels, B/s."""
    return max(float(r[kernel] or 0) for r in rows("gpubenches_stream.csv") if r["gpu"] == gpu) * 1e9


def l2_bandwidth(gpu):
    """Median over the data sets between 2 and 16 MB, B/s."""
    found = [float(r["GBps"]) for r in rows("gpubenches_cache_bandwidth.csv")
             if r["gpu"] == gpu and r["bench"] == "gpu-l2-cache" and 2000 <= float(r["total_kB"]) <= 16000]
    return statistics.median(found) * 1e9


def dram_latency(gpu):
    """Load latency of the largest working sets, s."""
    found = [(float(r["working_set_kB"]), float(r["latency_ns"])) for r in rows("gpubenches_latency.csv") if r["gpu"] == gpu]
    largest = max(size for size, _ in found)
    return statistics.median(ns for size, ns in found if size >= largest / 4) * 1e-9


def small_kernels(variant):
    """(bytes read and written, s) of back-to-back kernels in a CUDA graph, best block size."""
    result = []
    for r in rows("gpubenches_small_kernels.csv"):
        if r["gpu_variant"] != variant:
            continue
        rate = max(float(r["c%d" % i]) for i in range(1, 7) if r["c%d" % i])
        if rate > 0:
            result.append((16 * int(r["n_elems"]), 16 * int(r["n_elems"]) / rate / 1e9))
    return result


def residency(variant, l2_size, l2, hbm, report):
    """t = a + hits / (L2 * streaming) + misses / HBM. `l2_size` bytes, `l2` B/s; HBM's rate is that of the largest."""
    points = small_kernels(variant)
    fixed = min(t for _, t in points)
    large = statistics.median(v / (t - fixed) for v, t in points if v > 4 * l2_size)

    def predict(v, streaming, kept, lost):
        miss = min(1.0, max(0.0, (v / l2_size - kept) / (lost - kept)))
        return fixed + v * (1 - miss) / (l2 * streaming) + v * miss / large

    grid = [(s, k, w) for s in steps(0.3, 1.0, 0.02) for k in steps(0.3, 0.9, 0.05) for w in steps(0.8, 1.6, 0.05) if w > k]
    chosen = best(grid, lambda c: [(predict(v, *c), t) for v, t in points])
    p90 = report.add("L2 residency, %s" % variant, [(predict(v, *chosen), t) for v, t in points])
    return {"fixed": fixed, "streaming": chosen[0], "kept": chosen[1], "lost": chosen[2], "share": large / hbm, "p90": p90}


# ---- matrix products --------------------------------------------------------------------------------

def best_product(accelerator, dtype):
    for r in rows("mamf_gemm_tflops.csv"):
        if r["accelerator"] == accelerator and r["dtype"] == dtype:
            m, n, k = (int(x) for x in r["best_MxNxK"].split("x"))
            return (1, m, n, k), 2.0 * m * n * k / (float(r["mamf_tflops"]) * 1e12)
    raise KeyError(accelerator)


def mlp_rows():
    """(products, elements of the gate, bytes per element of its elementwise kernels, s) of gated MLPs in bf16.

    Forward: activation (read, write) and product (two reads, write). Backward: two gradients of the product and that
    of the activation, each two reads and a write, and the sum of two input gradients over hidden_size columns.
    """
    found = []
    for kernel, mode in (("swiglu", "forward"), ("geglu", "forward"), ("geglu", "backward")):
        for x, _, config, s in liger(kernel, mode):
            tokens = x * config.get("B", config.get("bsz"))
            h, i = config["hidden_size"], config["intermediate_size"]
            if mode == "forward":
                products = [(1, tokens, i, h), (1, tokens, i, h), (1, tokens, h, i)]
                moved = 10.0 * tokens * i
            else:
                products = [(1, tokens, h, i)] * 2 + [(1, tokens, i, h)] + [(1, i, h, tokens)] * 2 + [(1, h, i, tokens)]
                moved = 18.0 * tokens * i + 6.0 * tokens * h
            found.append((products, moved, s))
    return found


def matrix_a100(gpu, streaming, report):
    """Main loop of A100: the best product of all, and the products of gated MLPs."""
    shape, seconds = best_product("A100 SXM", "bf16")

    def pairs(share):
        result = [(gemm_model.seconds(gpu, shape, 2, share), seconds)]
        for products, moved, s in mlp_rows():
            result.append((sum(gemm_model.seconds(gpu, p, 2, share) for p in products) + moved / streaming, s))
        return result

    share = best(steps(0.7, 1.0, 0.005), pairs)
    return share, report.add("matrix products, A100, bf16", pairs(share))


def matrix_hopper(gpu, accelerators, dtype, element, report):
    points = [best_product(a, dtype) for a in accelerators]

    def pairs(share):
        return [(gemm_model.seconds(gpu, shape, element, share), s) for shape, s in points]

    share = best(steps(0.4, 1.0, 0.005), pairs)
    return share, report.add("matrix products, %s, %s" % (" ".join(accelerators), dtype), pairs(share))


# Kernels of a training step in plain fp32, by name and grid, and the products (batch, m, n, k) that they compute: 2048
# tokens, width 768, inner width 3072, 12 heads of 64 in sequences of 512, vocabulary 10000. Grids tell them apart.
SGEMM = "ampere_sgemm_"
FP32_PRODUCTS = {
    (SGEMM + "128x32_tn", 24, 64, 1): (1, 2048, 3072, 768), (SGEMM + "128x32_nn", 24, 64, 1): (1, 2048, 3072, 768),
    (SGEMM + "64x32_sliced1x4_nt", 48, 24, 1): (1, 3072, 768, 2048), (SGEMM + "128x64_nt", 6, 48, 3): (1, 768, 3072, 2048),
    (SGEMM + "128x64_nn", 6, 32, 5): (1, 2048, 768, 3072), (SGEMM + "128x64_tn", 6, 32, 8): (1, 2048, 768, 3072),
    (SGEMM + "64x32_sliced1x4_nt", 12, 24, 1): (1, 768, 768, 2048), (SGEMM + "128x128_tn", 6, 16, 2): (1, 2048, 768, 768),
    (SGEMM + "128x32_nn", 6, 64, 1): (1, 2048, 768, 768), (SGEMM + "128x64_tn", 79, 32, 1): (1, 2048, 10000, 768),
    (SGEMM + "128x32_sliced1x4_nn", 6, 64, 1): (1, 2048, 768, 10000), (SGEMM + "128x128_tn", 4, 4, 48): (48, 512, 512, 64),
    (SGEMM + "128x128_nn", 1, 4, 48): (48, 512, 64, 512), (SGEMM + "128x128_nt", 4, 1, 48): (48, 64, 512, 512)}
FP32_TABLE = "lm_small_train_a100.sqlite (Nsight Systems, kernels of 14 products)"


def fp32_products():
    path = os.path.join(os.environ.get("MEMWALL_SHARED", ""), "data", "traces", "nsys", "lm_small_train_a100.sqlite")
    if not os.path.exists(path):
        raise NoData("there is no " + path)
    query = """select avg(k.end - k.start) * 1e-9 from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.shortName
               where s.value = ? and gridX = ? and gridY = ? and gridZ = ?"""
    with sqlite3.connect("file:%s?mode=ro" % path, uri=True) as database:
        return [(shape, database.execute(query, kernel).fetchone()[0]) for kernel, shape in FP32_PRODUCTS.items()]


def matrix_fp32(gpu, report):
    points = fp32_products()

    def pairs(share, table=points):
        return [(gemm_model.seconds(gpu, shape, 4, share), s) for shape, s in table]

    share = best(steps(0.7, 1.0, 0.005), pairs)
    report.add("matrix products, A100, fp32, one at a time", pairs(share, [p for p in points if p[0][0] == 1]))
    return share, report.add("matrix products, A100, fp32, batched ones too", pairs(share))


# ---- convolutions --------------------------------------------------------------------------------------

VGG13 = "vgg13_h100_bs512_train.json"


def convolution_rows():
    """(backward, images, in, out, positions, s on the device) of the 3 x 3 convolutions of a captured step, TF32.

    Their kernels are those that were launched while the operator ran on its thread; without the first layer, whose
    three channels no matrix unit takes.
    """
    path = os.path.join(os.environ.get("MEMWALL_SHARED", ""), "data", "traces", "kineto", VGG13)
    if not os.path.exists(path):
        raise NoData("there is no " + path)
    with open(path) as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    kernels = {}
    for e in events:
        if e.get("cat") == "kernel":
            kernels.setdefault(e["args"]["correlation"], []).append(e["dur"])
    launches = [e for e in events if e.get("cat") == "cuda_runtime" and "Launch" in e["name"]]
    found = []
    for op in events:
        if op["name"] not in ("aten::cudnn_convolution", "aten::convolution_backward"):
            continue
        dims = op["args"]["Input Dims"]
        backward = "backward" in op["name"]
        (images, channels, height, width), weight = (dims[1], dims[2]) if backward else (dims[0], dims[1])
        us = sum(d for e in launches if e["tid"] == op["tid"] and op["ts"] <= e["ts"] < op["ts"] + op["dur"]
                 for d in kernels.get(e["args"].get("correlation"), []))
        if channels >= 8:
            found.append((backward, images, channels, weight[0], height * width, us * 1e-6))
    return found


def convolution_seconds(gpu, main_loop, share, row):
    backward, images, channels, out, positions, _ = row
    pixels = images * positions
    products = [(1, out, 9 * channels, pixels), (1, pixels, channels, 9 * out)] if backward else [(1, pixels, out, 9 * channels)]
    moved = 4.0 * pixels * ((2 * channels + out) if backward else (channels + out))
    conversions = (8 / 3 if backward else 2) * moved / (gpu["hbm"] * gpu["streaming"])
    return conversions + sum(gemm_model.seconds(gpu, p, 4, main_loop * share) for p in products)


def convolution(gpu, main_loop, report):
    """Shares of a product's main loop that convolutions reach, forward and backward, and the p90 of both."""
    rows_, shares, everything = convolution_rows(), [], []
    for backward in (False, True):
        def pairs(share, backward=backward):
            return [(convolution_seconds(gpu, main_loop, share, r), r[-1]) for r in rows_ if r[0] == backward]
        shares.append(best(steps(0.4, 1.0, 0.01), pairs))
        report.add("convolutions, H100, TF32, %s (VGG13)" % ("backward" if backward else "forward"), pairs(shares[-1]))
        everything += pairs(shares[-1])
    return shares, median_and_p90(everything)[1]


# ---- kernels that memory bounds, as PyTorch has them ---------------------------------------------------

def elementwise_pairs(hbm, share, fixed):
    """Chains of eager kernels: (bytes, kernels) over the time of RMSNorm as Hugging Face writes it.

    Forward, bytes per element: to fp32 6, pow 8, mean 4, times rsqrt 8, to bf16 6, times fp32 weight 6. Backward: of
    the weight product 10 and 4 and 8 and 6, casts 6, of the rsqrt product 8 and 12 and 4, mean 4, pow 8 and 8 and 12,
    sum of gradients 12, cast 6. Rows whose kernels move less than the L2 holds are left out: there the host may be
    slower than the kernels.
    """
    result = []
    for mode, per_element, kernels in (("forward", 38, 8), ("backward", 108, 17)):
        for x, _, config, s in liger("rms_norm", mode):
            if 4 * x * config["M"] < L2_OF_A100:
                continue
            result.append((kernels * fixed + per_element * float(x) * config["M"] / (hbm * share), s))
    return result


def elementwise(hbm, fixed, report):
    share = best(steps(0.3, 1.0, 0.005), lambda c: elementwise_pairs(hbm, c, fixed))
    return share, report.add("elementwise, A100 (eager RMSNorm, Liger)", elementwise_pairs(hbm, share, fixed))


def rope_pairs(hbm, share, fixed):
    """Rotary embedding as Hugging Face writes it, bf16: per element two products 8, negation of a half 2, cat 4, sum 6."""
    result = []
    for x, name, config, s in liger("rope", "forward"):
        hidden = x if name == "H" else config["hidden_size"]
        length = x if name == "T" else config["seq_len"]
        elements = length * hidden * (1 + config["num_kv_heads"] / config["num_q_heads"])
        result.append((10 * fixed + 20 * elements / (hbm * share), s))
    return result


def normalization(hbm, fixed, report):
    """Layer norm of fp32: forward reads and writes a row, backward reads two and writes one."""
    forward = {x: (c["M"], s) for x, _, c, s in liger("layer_norm", "forward")}
    full = {x: s for x, _, _, s in liger("layer_norm", "full")}
    points = {"forward": [(8.0 * m * x, 1, s) for x, (m, s) in forward.items()],
              "backward": [(12.0 * m * x, 2, full[x] - s) for x, (m, s) in forward.items()]}
    result, everything = {}, []
    for mode, table in points.items():
        def pairs(share, table=table):
            return [(n * fixed + moved / (hbm * share), s) for moved, n, s in table]
        result[mode] = best(steps(0.2, 1.0, 0.005), pairs)
        report.add("normalization, A100, %s (Liger layer_norm)" % mode, pairs(result[mode]))
        everything += pairs(result[mode])
    return result, median_and_p90(everything)[1]


def reduction(hbm, fixed, report):
    """Log-softmax of fp32 by the width of its rows. Forward reads and writes a row, backward reads two and writes one.

    Cross entropy has two kernels more: nll_loss, one block whose time grows with the rows alone (fitted here as a
    constant, all tables have 16384 rows), and in the backward a fill of the gradient and a scatter.
    """
    forward = {x: (c["B"] * c["T"], s) for x, _, c, s in liger("cross_entropy", "forward")}
    full = {x: s for x, _, _, s in liger("cross_entropy", "full")}
    narrow = lambda x: 4 * x <= 64 * 1024

    def predict_forward(x, m, shares, loss):
        return fixed + loss + 8.0 * m * x / (hbm * shares[0 if narrow(x) else 1])

    def forward_pairs(c):
        return [(predict_forward(x, m, c[:2], c[2]), s) for x, (m, s) in forward.items()]

    def backward_pairs(share):
        return [(3 * fixed + 16.0 * m * x / (hbm * share), full[x] - s) for x, (m, s) in forward.items()]

    grid = [(a, b, c * 1e-6) for a in steps(0.4, 0.9, 0.02) for b in steps(0.3, 0.6, 0.01) for c in range(300, 701, 20)]
    chosen = best(grid, forward_pairs)
    backward = best(steps(0.2, 0.8, 0.005), backward_pairs)
    report.add("reduction, A100, forward (Liger cross_entropy)", forward_pairs(chosen))
    report.add("reduction, A100, backward (Liger cross_entropy)", backward_pairs(backward))
    p90 = median_and_p90(forward_pairs(chosen) + backward_pairs(backward))[1]
    return {"narrow": chosen[0], "wide": chosen[1], "loss": chosen[2], "backward": backward, "p90": p90}


def embedding(hbm, fixed, report):
    """Gather of fp32 rows: reads and writes them. Backward: gradients read, the table's gradient filled and added to
    what is there already (two reads and a write), as autograd does where a gradient is kept."""
    forward = [(x, c, s) for x, _, c, s in liger("embedding", "forward")]
    full = {(x, c["D"]): s for x, _, c, s in liger("embedding", "full")}

    def forward_pairs(share):
        return [(fixed + 8.0 * c["B"] * c["T"] * c["D"] / (hbm * share), s) for x, c, s in forward]

    def backward_pairs(share):
        return [(3 * fixed + 4.0 * (3 * c["B"] * c["T"] + 4 * x) * c["D"] / (hbm * share), full[x, c["D"]] - s)
                for x, c, s in forward]

    shares = best(steps(0.1, 1.0, 0.005), forward_pairs), best(steps(0.1, 1.0, 0.005), backward_pairs)
    report.add("embedding, A100, forward (Liger embedding)", forward_pairs(shares[0]))
    report.add("embedding, A100, backward (Liger embedding)", backward_pairs(shares[1]))
    return shares, median_and_p90(forward_pairs(shares[0]) + backward_pairs(shares[1]))[1]
