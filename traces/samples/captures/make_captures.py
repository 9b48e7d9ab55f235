#!/usr/bin/env python3
"""Makes the sample captures beside this file: one full training step each with AdamW, on fake tensors.

    make_captures.py [NAME...] [--out DIR]      # needs torch; takes a minute for all

The second step is recorded, so that the optimizer's state exists. Shapes: GPT-2 (Radford et al. 2019), Llama 3 8B
(model card), BERT-large (Devlin et al. 2018), ViT-L/16 (Dosovitskiy et al. 2020), ResNet-50 (He et al. 2015), and a
small model of Mixtral's kind (Jiang et al. 2024: 8 experts, 2 chosen).
"""

import os
import resource
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "capture")]

import torch  # noqa: E402

import memwall_capture  # noqa: E402
import models  # noqa: E402
from chosen import chosen  # noqa: E402


def words(batch, length, vocabulary):
    return lambda: tuple(torch.randint(0, vocabulary, (batch, length), device="cuda") for _ in range(2))


def images(batch):
    return lambda: (torch.randn(batch, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (batch,), device="cuda"))


# name: (model, input, samples and tokens per step, dtype: of the parameters, or "amp" for fp32 with bf16 autocast)
SAMPLES = {
    "gpt2_124m": (models.Gpt2, words(8, 1024, 50257), 8, 8 * 1024, "amp"),
    "gpt2_124m_fp32": (models.Gpt2, words(8, 1024, 50257), 8, 8 * 1024, "fp32"),
    "llama3_8b": (models.Llama, words(1, 4096, 128256), 1, 4096, "bf16"),
    "bert_large": (models.Bert, words(16, 512, 30522), 16, 16 * 512, "amp"),
    "vit_l": (models.Vit, images(32), 32, None, "amp"),
    "resnet50": (models.ResNet50, images(128), 128, None, "amp"),
    "mixtral_small": (lambda: models.Llama(layers=8, width=1024, heads=16, kv_heads=4, inner=3584, vocabulary=32000,
                                           experts=(8, 2)), words(4, 2048, 32000), 4, 4 * 2048, "bf16"),
}


def capture(name, path):
    make, inputs, samples, tokens, dtype = SAMPLES[name]
    with memwall_capture.fake():
        with torch.device("cuda"):
            model = make()
        if dtype == "bf16":
            model = model.to(torch.bfloat16)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        batch = inputs()

        def train_step():
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=dtype == "amp"):
                loss = model(*batch)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        train_step()
        with memwall_capture.step(path, model=model, optimizer=optimizer, name=name, samples_per_step=samples,
                                  tokens_per_step=tokens):
            train_step()


def main():
    for name, path in chosen(__doc__.split("\n")[0], SAMPLES, HERE):
        begin = time.perf_counter()
        capture(name, path)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"{name}: {time.perf_counter() - begin:.1f} s, peak {peak} MiB, file {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
