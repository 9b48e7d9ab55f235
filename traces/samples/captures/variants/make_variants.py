#!/usr/bin/env python3
"""Makes the small captures beside this file: what a training program may do otherwise than the six samples, on networks
of two layers. Generated steps are compared with them op by op (tests/smoke/generated_networks_test.cpp).

    make_variants.py [NAME...] [--out DIR]      # needs torch (and fp8 torchao); takes a minute for all

The third step is recorded: optimizer states exist then, and DistributedDataParallel has its final buckets.
"""

import contextlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "..", "capture")]

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import torch.utils.checkpoint  # noqa: E402

import memwall_capture  # noqa: E402
import models  # noqa: E402
from chosen import chosen  # noqa: E402

RANKS = 8
VGG13 = (64, 64, 0, 128, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)


class Vgg(nn.Module):
    """As torchvision has it; 0 is a pooling."""

    def __init__(self, channels, batch_norm, classes=1000):
        super().__init__()
        layers, inputs = [], 3
        for outputs in channels:
            if outputs == 0:
                layers.append(nn.MaxPool2d(2, 2))
                continue
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1)] + [nn.BatchNorm2d(outputs)] * batch_norm
            layers.append(nn.ReLU(True))
            inputs = outputs
        self.features, self.avgpool = nn.Sequential(*layers), nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(inputs * 49, 4096), nn.ReLU(True), nn.Dropout(0.5), nn.Linear(4096, 4096), nn.ReLU(True),
            nn.Dropout(0.5), nn.Linear(4096, classes))

    def forward(self, images, targets):
        x = torch.flatten(self.avgpool(self.features(images)), 1)
        return F.cross_entropy(self.classifier(x), targets)


class CheckpointedGpt2(models.Gpt2):
    """Each layer is run again in backward."""

    def forward(self, words, targets):
        x = self.dropout(self.words(words) + self.positions(torch.arange(words.shape[1], device=words.device)))
        for block in self.h:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class ChunkedGpt2(models.Gpt2):
    """The logits in eight pieces, cast up one after the other, as torchtune's CEWithChunkedOutputLoss has it."""

    def forward(self, words, targets):
        x = self.dropout(self.words(words) + self.positions(torch.arange(words.shape[1], device=words.device)))
        for block in self.h:
            x = block(x)
        x = self.norm(x)
        logits = [self.head(piece) for piece in x.tensor_split(8, dim=1)]
        del x
        labels = [piece.reshape(-1) for piece in targets.tensor_split(8, dim=1)]
        loss = 0.0
        for piece, label in zip(logits, labels):
            loss += F.cross_entropy(piece.flatten(0, 1).float(), label, reduction="sum")
        return loss / targets.numel()


class LoraLinear(nn.Module):
    """A frozen linear layer and a trained pair of low rank beside it."""

    def __init__(self, linear, rank):
        super().__init__()
        self.linear = linear
        self.lora_a = nn.Linear(linear.in_features, rank, bias=False)
        self.lora_b = nn.Linear(rank, linear.out_features, bias=False)

    def forward(self, x):
        out = self.linear(x)
        part = self.lora_a(x)
        part = 2.0 * self.lora_b(part)
        return out + part


def lora_gpt():
    model = gpt().requires_grad_(False)
    for block in model.h:
        for owner, name in ((block.attention, "qkv"), (block.attention, "out"), (block, "up"), (block, "down")):
            setattr(owner, name, LoraLinear(getattr(owner, name), 8))
    return model


def fp8_gpt():
    """All linear layers but the output layer in fp8; needs torchao."""
    from torchao.float8 import convert_to_float8_training
    model = gpt().to(torch.bfloat16)
    return convert_to_float8_training(model, module_filter_fn=lambda module, name: name != "head")


def small(network):
    return lambda: network(layers=2, width=256, heads=4, length=128, vocabulary=1000)


def gpt():
    return models.Gpt2(layers=2, width=256, heads=4, length=128, vocabulary=1000)


def words():
    return tuple(torch.randint(0, 1000, (4, 128), device="cuda") for _ in range(2))


def images(batch=8):
    return torch.randn(batch, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (batch,), device="cuda")


def adamw(**options):
    return lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, **options)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)


# model, inputs, optimizer, passes per update, precision, set_to_none, in_backward, parallel: None or DDP's options
DEFAULTS = {"model": gpt, "inputs": words, "optimizer": adamw(), "accumulation": 1, "precision": "amp_bf16",
            "set_to_none": True, "in_backward": False, "parallel": None}
VARIANTS = {
    "fused": {"optimizer": adamw(fused=True)},
    "adam": {"optimizer": lambda parameters: torch.optim.Adam(parameters, lr=1e-4)},
    "sgd": {"optimizer": sgd},
    "accumulation": {"accumulation": 3, "precision": "bf16"},
    "kept_gradients": {"set_to_none": False},
    "amp_fp16": {"precision": "amp_fp16"},
    "amp_fp16_fused": {"precision": "amp_fp16", "optimizer": adamw(fused=True)},
    "in_backward": {"in_backward": True, "precision": "bf16"},
    "parallel": {"parallel": {}, "accumulation": 2},
    "parallel_views": {"parallel": {"gradient_as_bucket_view": True}},
    "checkpointed": {"model": small(CheckpointedGpt2), "precision": "bf16"},
    "chunked": {"model": small(ChunkedGpt2), "precision": "bf16"},
    "fp8": {"model": fp8_gpt, "precision": "bf16"},
    "lora": {"model": lora_gpt, "precision": "bf16"},
    "vgg": {"model": lambda: Vgg((64, 64, 0, 128, 0), False), "inputs": images, "optimizer": sgd},
    "vgg_batch_norm": {"model": lambda: Vgg((64, 64, 0, 128, 0), True), "inputs": images, "optimizer": sgd},
    # The whole network, as a profile of it exists (tests/oracle/grafted_captures_test.cpp).
    "vgg13_batch_512": {"model": lambda: Vgg(VGG13, False), "inputs": lambda: images(512), "precision": "fp32",
                        "optimizer": lambda parameters: torch.optim.Adam(parameters, lr=1e-4)},
}


def parallel(model, options):
    from torch.testing._internal.distributed.fake_pg import FakeStore
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    return nn.parallel.DistributedDataParallel(model, **options)


def update_in_backward(model, make):
    for p in model.parameters():
        optimizer = make([p])

        def update(_, optimizer=optimizer):
            optimizer.step()
            optimizer.zero_grad()

        p.register_post_accumulate_grad_hook(update)


def capture(name, path):
    v = DEFAULTS | VARIANTS[name]
    with memwall_capture.fake():
        with torch.device("cuda"):
            model = v["model"]()
        if v["precision"] == "bf16":
            model = model.to(torch.bfloat16)
        optimizer = None
        if v["in_backward"]:
            update_in_backward(model, v["optimizer"])
        else:
            optimizer = v["optimizer"](model.parameters())
        program = model if v["parallel"] is None else parallel(model, v["parallel"])
        inputs, passes = v["inputs"](), v["accumulation"]
        half = v["precision"] == "amp_fp16"
        scaler = torch.amp.GradScaler("cuda", enabled=half)

        def train_step():
            for i in range(passes):
                local = v["parallel"] is not None and i + 1 < passes
                with program.no_sync() if local else contextlib.nullcontext():
                    with torch.autocast("cuda", dtype=torch.float16 if half else torch.bfloat16,
                                        enabled=v["precision"] not in ("bf16", "fp32")):
                        loss = program(*inputs)
                    if passes > 1:
                        loss = loss / passes
                    scaler.scale(loss).backward()
            if optimizer is not None:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=v["set_to_none"])

        train_step()
        train_step()
        with memwall_capture.step(path, model=model, optimizer=optimizer, name=name):
            train_step()


def main():
    for name, path in chosen(__doc__.split("\n")[0], VARIANTS, HERE):
        capture(name, path)
        print(f"{name}: file {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
