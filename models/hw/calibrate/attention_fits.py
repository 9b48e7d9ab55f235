"""Fused attention: what each kernel reaches on A100 and H100 by head size and length (models/hw/attention_cost.h)."""

import math
import statistics

from gpu_fits import best
from published import rows

TABLE = "flashattention_tflops_a100_h100.csv"


def table_rows(gpu, algorithm):
    """Those that are fitted, every second, and those held out: (passes, head size, keys, causal, FLOP/s)."""
    all_rows = [(r["pass"], int(r["head_dim"]), int(r["seq"]), r["causal"] == "1", float(r["tflops"]) * 1e12)
                for r in rows(TABLE) if r["gpu"] == gpu and r["algo"] == algorithm and r["tflops"] != "OOM"]
    return all_rows[0::2], all_rows[1::2]


TOKENS, HIDDEN = 16384, 2048  # of every row: batch * length, heads * head size


def forward_flops(seq, causal):
    """Of the forward, as the benchmark counts them."""
    return 4.0 * seq * TOKENS * HIDDEN * (0.5 if causal else 1)


def forward_seconds(head_size, seq, causal, rate, start_up, causal_start_up, multiprocessors):
    waves = TOKENS / 128 * HIDDEN / head_size / multiprocessors
    rate *= waves / math.ceil(waves)
    # The benchmark counts half of the pairs under a causal mask; the model counts the diagonal too.
    pairs = (seq + 1) / seq if causal else 1
    return forward_flops(seq, causal) * pairs / rate * (1 + (causal_start_up if causal else start_up) / seq)


def record(table, forward_of_both):
    """The fastest forward of all rows, held out or not; of rows of both passes by what the forward has of them."""
    return max(rate * (1 if passes == "fwd" else forward_of_both) for passes, _, _, _, rate in table)


def fit_kernel(gpu, algorithm, peak, multiprocessors, fixed, ratio, report):
    """Shares of the forward by head size, start-ups, and (where both passes and one are listed) backward / forward."""
    fitted, held = table_rows(gpu, algorithm)
    of = lambda which, passes: [r[1:] for r in which if r[0] == passes]
    both, forward = of(fitted, "fwd+bwd"), of(fitted, "fwd")
    sizes = sorted({d for d, _, _, _ in both + forward})

    def top(table, d):
        return max([r for dd, _, c, r in table if dd == d and not c], default=0) / peak

    if forward and both:
        of_two = [(top(forward, d), top(both, d)) for d in sizes if top(both, d)]
        ratio = statistics.mean(2.5 / (3.5 / b - 1 / f) / f for f, b in of_two)
    forward_of_both = (1 + 2.5 / ratio) / 3.5  # forward share / share of both passes
    shares = {d: top(forward, d) or top(both, d) * forward_of_both for d in sizes}

    def pairs(start_up, causal_start_up, scale, which=fitted):
        result = []
        for table, passes in ((of(which, "fwd"), [1]), (of(which, "fwd+bwd"), [1, 2.5 / ratio])):
            for d, seq, causal, rate in table:
                alone = forward_seconds(d, seq, causal, peak * shares[d] * scale, start_up, causal_start_up,
                                          multiprocessors)
                flops = forward_flops(seq, causal) * (3.5 if len(passes) > 1 else 1)
                result.append((sum(fixed + alone * p for p in passes), flops / rate))
        return result

    grid = [(s, c, k) for s in range(0, 401, 10) for c in range(0, 1201, 20)
            for k in (0.98, 1.0, 1.02, 1.04, 1.06, 1.08, 1.1)]
    start_up, causal_start_up, scale = best(grid, lambda c: pairs(*c))
    p90 = report.add("attention, %s on %s" % (algorithm, gpu[:4]), pairs(start_up, causal_start_up, scale))
    report.add("held out: attention, %s on %s" % (algorithm, gpu[:4]), pairs(start_up, causal_start_up, scale, held))
    return {"forward": bool(forward), "ratio": ratio, "start_up": start_up, "causal": causal_start_up, "p90": p90,
            "shares": [(d, shares[d] * scale) for d in sizes], "record": record(fitted + held, forward_of_both)}


# Kernels of machine files by the names that the table has for them.
KERNELS = {"a100": {"flash_attention_2": "FA2", "flash_attention_1": "FA1"},
           "hopper": {"flash_attention_2": "FA2", "flash_attention_1": "FA1", "flash_attention_3": "FA3", "cudnn": "cuDNN"}}
GPU = {"a100": "A100-80GB SXM4", "hopper": "H100-80GB SXM5"}
BOTH_PASSES = "%s, forward alone and both passes on H100"
# Of kernels whose backward the table lacks: FlashAttention-3's is 1.5 to 1.75 times as fast as the second's.
BACKWARD_OF_THIRD = 1.625
OF_THIRD = ("assumption: backward %s times FlashAttention-2's, the middle of 1.5 to 1.75 (Shah and others 2024, "
            "FlashAttention-3, introduction)") % BACKWARD_OF_THIRD


def fit_all(machines, report):
    """{generation: {kernel: fit}}; `machines`: files of A100 and H100 by generation."""
    result = {"hopper": {}, "a100": {}}
    for generation, fits in result.items():
        m = machines[generation]
        constants = (m.value("gpu.peak.fp16.rate"), m.value("gpu.multiprocessors"), m.value("gpu.efficiency.attention.fixed"))
        for kernel, algorithm in KERNELS[generation].items():
            second = result["hopper"].get("flash_attention_2")
            ratio = second["ratio"] if second else None
            one = fit_kernel(GPU[generation], algorithm, *constants, ratio, report)
            if kernel in ("flash_attention_3", "cudnn"):
                of_second = dict(second["shares"])
                beside = [share / of_second[size] for size, share in one["shares"]]
                one["ratio"] = BACKWARD_OF_THIRD * second["ratio"] / statistics.mean(beside)
            fits[kernel] = one
    return result


def set_kernels(m, fits, generation, source, residual=None):
    """Every kernel of a generation. `source`: (what the table has, p90 or None) -> where a number is from; `residual`:
    (value, source) of machines that are not in the table."""
    gpu = GPU[generation][:4]
    for kernel, one in fits[generation].items():
        path = "gpu.attention.%s" % kernel
        text = source("%s, %s on %s" % (TABLE, KERNELS[generation][kernel], gpu), one["p90"])
        m.make(path, "kernel")
        m.set_curve(path + ".forward", ["%d B: %.3g" % (2 * size, share) for size, share in one["shares"]], text)
        third = kernel in ("flash_attention_3", "cudnn")
        m.set(path + ".backward_ratio", "%.3g" % one["ratio"], OF_THIRD if third else source(BOTH_PASSES % TABLE, None))
        m.set(path + ".start_up_keys", "%d" % one["start_up"], text)
        m.set(path + ".causal_start_up_keys", "%d" % one["causal"], text)
        m.set(path + ".residual", *(residual or ("%.3g" % one["p90"], text)))
        if residual is None:
            m.set(path + ".record", "%.4g TFLOP/s" % (one["record"] / 1e12),
                  "fastest row of %s, %s on %s%s" % (
                      TABLE, KERNELS[generation][kernel], gpu, "" if one["forward"] else
                      "; of both passes, the forward's part by FlashAttention-2 on H100"))


# Blackwell: what the authors of FlashAttention-4 say of B200 (Zadouri and others 2026, arXiv 2603.05451): 1605 TFLOP/s
# forward at best, 1.1 to 1.3 times cuDNN's and 2.1 to 2.7 times Triton's. The second generation uses instructions of
# Ampere, which a multiprocessor of Hopper and Blackwell does equally fast.
FOURTH = "Zadouri and others 2026 (arXiv 2603.05451)"
BEST_OF_FOURTH, BESIDE_CUDNN, BESIDE_TRITON = 1605e12, 1.2, 2.4


def set_blackwell(m, fits):
    peak, units = m.value("gpu.peak.bf16.rate"), m.value("gpu.multiprocessors")
    third, second = fits["hopper"]["flash_attention_3"], fits["hopper"]["flash_attention_2"]
    best_of_third = dict(third["shares"])[128]
    fourth = [(size, BEST_OF_FOURTH / peak * min(1, share / best_of_third)) for size, share in third["shares"][:2]]
    as_third = "assumption: as FlashAttention-3 on H100"
    assumed = {
        "flash_attention_4": (fourth, third, "assumption: %s, at best 1605 TFLOP/s with heads of 128; of 64 as "
                              "FlashAttention-3 on H100 beside its own" % FOURTH),
        "cudnn": ([(d, s / BESIDE_CUDNN) for d, s in fourth], third,
                  "assumption: %s, FlashAttention-4 is 1.1 to 1.3 times as fast" % FOURTH),
        "triton": ([(d, s / BESIDE_TRITON) for d, s in fourth], third,
                   "assumption: %s, FlashAttention-4 is 2.1 to 2.7 times as fast" % FOURTH),
        "flash_attention_2": ([(d, s * 989.4e12 / 132 * units / peak) for d, s in second["shares"]], second,
                              "assumption: instructions of Ampere, per multiprocessor as fast as on H100")}
    for kernel, (shares, like, source) in assumed.items():
        path = "gpu.attention.%s" % kernel
        m.make(path, "kernel")
        m.set_curve(path + ".forward", ["%d B: %.3g" % (2 * d, s) for d, s in shares], source)
        m.set(path + ".backward_ratio", "%.3g" % like["ratio"], source if like is second else as_third)
        m.set(path + ".start_up_keys", "%d" % like["start_up"], source if like is second else as_third)
        m.set(path + ".causal_start_up_keys", "%d" % like["causal"], source if like is second else as_third)
        m.set(path + ".residual", "0.3", "assumption: no table of such kernels on this GPU")
        if kernel == "flash_attention_4":
            m.set(path + ".record", "1605 TFLOP/s", FOURTH)
