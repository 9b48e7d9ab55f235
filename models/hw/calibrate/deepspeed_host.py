"""What DeepSpeed's hooks take on the host, as PyTorch runs them on a CPU: networks of linear layers of width 16, one process
under gloo, bf16. Prints, in us of the program's thread, what a module without parameters and one with a parameter add to
a forward and a backward pass, by the size of reduction buckets; from these are the multiples of hook_us in
policies/sharding/deepspeed_fetches.cpp, deepspeed_scatter.cpp and deepspeed_reduction.cpp.

With torch 2.15 and DeepSpeed 0.19.6 on an AMD EPYC (two busy hardware threads, 27 November 2026): a module without
parameters adds 150 to 185 us forward and 60 to 115 backward to stage 3, one with a parameter 195 to 330 and, where nothing
is reduced, 225; with buckets of 8, 4 and 1 gradients 455, 470 and 890. In stage 2 a gradient adds 115, 130 and 330.

    DS_ACCELERATOR=cpu python models/hw/calibrate/deepspeed_host.py
"""

import logging
import os
import statistics
import time

os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", DS_ACCELERATOR="cpu")
os.environ.setdefault("MASTER_PORT", "29591")

import deepspeed  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

WIDTH, LAYERS, WARM_UP, PASSES = 16, 8, 20, 40
NEVER = 10**8  # elements of a bucket that backward does not fill, and passes without a step


class Block(nn.Module):
    def __init__(self, linear, idle):
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(linear))
        self.idles = nn.ModuleList(nn.ReLU() for _ in range(idle))

    def forward(self, x):
        for module in [*self.linears, *self.idles]:
            x = module(x)
        return x


class Network(nn.Module):
    def __init__(self, linear, idle):
        super().__init__()
        self.blocks = nn.ModuleList(Block(linear, idle) for _ in range(LAYERS))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.sum()


def passes(forward, backward):
    """us of forward and backward: the first tenth of the passes, as others use the processor, too."""
    times = []
    x = torch.randn(4, WIDTH, dtype=torch.bfloat16, requires_grad=True)
    for _ in range(WARM_UP + PASSES):
        begin = time.thread_time()
        loss = forward(x)
        middle = time.thread_time()
        backward(loss)
        times.append((middle - begin, time.thread_time() - middle))
    return [1e6 * statistics.quantiles((t[i] for t in times[WARM_UP:]), n=10)[0] for i in range(2)]


def added(stage, bucket, linear, idle):
    """us that DeepSpeed adds to such a network's passes."""
    plain = Network(linear, idle).bfloat16()
    without = passes(plain, lambda loss: loss.backward())
    network = Network(linear, idle)
    engine = deepspeed.initialize(
        model=network, model_parameters=list(network.parameters()),
        config={"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": NEVER, "bf16": {"enabled": True},
                "optimizer": {"type": "AdamW", "params": {"torch_adam": True}},
                "zero_optimization": {"stage": stage, "overlap_comm": True, "reduce_bucket_size": bucket,
                                      "stage3_param_persistence_threshold": 0,
                                      "stage3_prefetch_bucket_size": WIDTH * WIDTH}})[0]
    return [a - b for a, b in zip(passes(engine, engine.backward), without)]


def main():
    torch.set_num_threads(1)
    deepspeed.init_distributed(dist_backend="gloo")
    logging.disable(logging.WARNING)
    for stage in (3, 2):
        for gradients in (1, 4, 8, None):
            bucket = NEVER if gradients is None else gradients * WIDTH * WIDTH
            base = added(stage, bucket, 4, 4)
            idle = [(a - b) / (8 * LAYERS) for a, b in zip(added(stage, bucket, 4, 12), base)]
            linear = [(a - b) / (8 * LAYERS) for a, b in zip(added(stage, bucket, 12, 4), base)]
            print("stage %d, %s gradients in a bucket: module without parameters %.0f forward, %.0f backward; with one "
                  "%.0f, %.0f" % (stage, gradients or "all", *idle, *linear), flush=True)


if __name__ == "__main__":
    main()
