"""models/hw/gemm_cost.cpp once more, for fitting. tests/oracle/kernel_cost_test.cpp holds the two together."""

import math

TILES = [(256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 64)]
SPLITS = [1, 2, 3, 4, 6, 8, 16, 32]
FULL_TILE = 128 * 128
SHORTEST_LOOP, LOOP_STEP = 256, 32


def seconds(gpu, shape, element, main_loop, aligned=1.0):
    """`gpu`: compute_major, multiprocessors, peak, l2 (B/s), hbm (B/s), start_up (s), fixed (s). `shape`: batch, m, n, k."""
    batch, m, n, k = shape
    count = gpu["multiprocessors"]
    best = math.inf
    for tile_m, tile_n in TILES:
        rows = tile_m * (2 if gpu["compute_major"] >= 9 else 1)
        per_byte = 2 * rows * tile_n / ((rows + tile_n) * element)
        rate = min(gpu["peak"] * main_loop, per_byte * gpu["l2"]) / count * aligned
        for splits in SPLITS:
            each = math.ceil(batch * math.ceil(m / tile_m) * math.ceil(n / tile_n) * splits / count)
            loop = max(math.ceil(k / splits), min(k, SHORTEST_LOOP))
            loop = math.ceil(loop / LOOP_STEP) * LOOP_STEP
            alone = min(1.0, math.sqrt(tile_m * tile_n / FULL_TILE))
            busy, waves = max(each, 1 / alone), max(1.0, each * alone)
            adding = 4 * (2 * splits + 1) * batch * m * n / gpu["hbm"] + gpu["small"] if splits > 1 else 0
            best = min(best, busy * 2 * tile_m * tile_n * loop / rate + waves * gpu["start_up"] + adding)
    return best + gpu["fixed"]
