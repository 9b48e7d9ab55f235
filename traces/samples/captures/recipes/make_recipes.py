#!/usr/bin/env python3
"""One training step of small networks as written, and of the same programs with one thing changed: another optimizer,
other kernels of it, several passes per update, another precision, another kernel of attention, compiled. What a policy
of policies/recipe or policies/compile makes of the first is compared with the others
(tests/oracle/recipe_captures_test.cpp, tests/oracle/precision_captures_test.cpp,
tests/oracle/compiled_captures_test.cpp).

    make_recipes.py [NAME...] [--out DIR]      # needs torch (and fp8 torchao); a minute for all

A name is NETWORK or NETWORK-CASE. On fake tensors; the second step is recorded, so that the optimizer's states exist.
"""

import argparse
import contextlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "..", "capture")]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
import torch.nn.utils.prune  # noqa: E402

import memwall_capture  # noqa: E402
import models  # noqa: E402
from make_captures import images, words  # noqa: E402

def chunked(logits, targets, wide):
    """torchtune's CEWithChunkedOutputLoss, of logits that are there piece by piece."""
    labels = [piece.reshape(-1) for piece in targets.tensor_split(len(logits), dim=1)]
    loss = 0.0
    for piece, label in zip(logits, labels):
        rows = piece.flatten(0, 1)
        loss += F.cross_entropy(rows.float() if wide else rows, label, reduction="sum")
    return loss / targets.numel()


class ChunkedGpt2(models.Gpt2):
    def forward(self, words, targets):
        x = self.words(words) + self.positions(torch.arange(words.shape[1], device=words.device))
        x = self.dropout(x)
        for block in self.h:
            x = block(x)
        normed = self.norm(x)
        logits = [self.head(piece) for piece in normed.tensor_split(4, dim=1)]
        del normed
        return chunked(logits, targets, wide=False)


class ChunkedLlama(models.Llama):
    def forward(self, words, targets):
        x = self.words(words)
        cosine, sine = self.rotation(words.shape[1], x.dtype, x.device)
        for layer in self.layers:
            x = layer(x, cosine, sine)
        normed = self.norm(x)
        logits = [self.head(piece) for piece in normed.tensor_split(4, dim=1)]
        del normed
        return chunked(logits, targets, wide=True)


# network: (model, inputs, dtype of the parameters or "amp" for fp32 with bf16 autocast)
NETWORKS = {
    "gpt": (lambda: models.Gpt2(layers=2, width=128, heads=4, length=64, vocabulary=500), words(4, 64, 500), "amp"),
    "llama": (lambda: models.Llama(layers=2, width=128, heads=4, kv_heads=2, inner=256, vocabulary=500),
              words(4, 64, 500), "bf16"),
    "bert": (lambda: models.Bert(layers=2, width=128, heads=4, length=64, vocabulary=500), words(4, 64, 500), "amp"),
    "resnet": (lambda: models.ResNet50(counts=(1, 1, 1, 1)), images(4), "amp"),
    "vit": (lambda: models.Vit(layers=2, width=128, heads=4, image=64), lambda: (
        torch.randn(4, 3, 64, 64, device="cuda"), torch.randint(0, 1000, (4,), device="cuda")), "amp"),
}


def sgd(parameters, **options):
    return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, **options)


def adam(parameters, **options):
    return torch.optim.Adam(parameters, lr=1e-4, **options)


def adamw(parameters, **options):
    return torch.optim.AdamW(parameters, lr=1e-4, **options)


# case: (optimizer, its options, passes per update)
CASES = {
    "base": (adamw, {}, 1),
    "sgd": (sgd, {}, 1),
    "sgd_for_loop": (sgd, {"foreach": False}, 1),
    "adam": (adam, {}, 1),
    "adam_fused": (adam, {"fused": True}, 1),
    "adamw_fused": (adamw, {"fused": True}, 1),
    "adamw_for_loop": (adamw, {"foreach": False}, 1),
    "three_passes": (adamw, {}, 3),
    "adamw_in_backward": (adamw, {}, 1),
    "chunked_loss": (adamw, {}, 1),
    "pruned": (adamw, {}, 1),
    "compiled": (adamw, {}, 1),  # the model, by torch.compile as it is
    "compiled_layers": (adamw, {}, 1),  # each layer by itself
}
ONLY = {"compiled": ("gpt", "llama"), "compiled_layers": ("gpt", "llama")}
# case: the networks of which it is made where that is not all of them, and what it makes of the model.
CHANGED = {
    "chunked_loss": {
        "gpt": lambda: ChunkedGpt2(layers=2, width=128, heads=4, length=64, vocabulary=500),
        "llama": lambda: ChunkedLlama(layers=2, width=128, heads=4, kv_heads=2, inner=256, vocabulary=500),
    },
}

# case: (precision, the kernels of attention that PyTorch may take), with AdamW and one pass. Of the first all parameters
# are fp32; "amp" is autocast. All but "grouped" have as many heads of keys as of queries: the memory-efficient kernel takes no others.
PRECISIONS = {
    "fp32": ("fp32", SDPBackend.EFFICIENT_ATTENTION),
    "tf32": ("tf32", SDPBackend.EFFICIENT_ATTENTION),
    "bf16": ("bf16", SDPBackend.EFFICIENT_ATTENTION),
    "amp_bf16": ("amp_bf16", SDPBackend.EFFICIENT_ATTENTION),
    "amp_fp16": ("amp_fp16", SDPBackend.EFFICIENT_ATTENTION),  # with a GradScaler
    "bf16_flash": ("bf16", SDPBackend.FLASH_ATTENTION),
    "amp_flash": ("amp_bf16", SDPBackend.FLASH_ATTENTION),
    "bf16_plain": ("bf16", SDPBackend.MATH),  # scores in memory, by the program itself
    "amp_plain": ("amp_bf16", SDPBackend.MATH),
    "fp32_math": ("fp32", SDPBackend.MATH),  # scores in memory, by scaled_dot_product_attention
    "bf16_math": ("bf16", SDPBackend.MATH),
    "amp_math": ("amp_bf16", SDPBackend.MATH),
    "bf16_grouped_flash": ("bf16", SDPBackend.FLASH_ATTENTION),  # two heads of queries share one of keys
    "bf16_grouped_math": ("bf16", SDPBackend.MATH),
    "amp_grouped_flash": ("amp_bf16", SDPBackend.FLASH_ATTENTION),
    "amp_grouped_math": ("amp_bf16", SDPBackend.MATH),
    "fp8": ("fp8", SDPBackend.EFFICIENT_ATTENTION),  # linear layers by torchao, the rest bf16
    "fp32_fused": ("fp32", SDPBackend.EFFICIENT_ATTENTION),  # AdamW by fused kernels
    "amp_fp16_fused": ("amp_fp16", SDPBackend.EFFICIENT_ATTENTION),
    "fp32_shared": ("fp32", SDPBackend.EFFICIENT_ATTENTION),  # one layer twice, whose weights two products read each
    "amp_shared": ("amp_bf16", SDPBackend.EFFICIENT_ATTENTION),
    "fp32_chunked": ("fp32", SDPBackend.EFFICIENT_ATTENTION),  # an output layer that makes its logits in pieces
    "amp_chunked": ("amp_bf16", SDPBackend.EFFICIENT_ATTENTION),
}
# What is not made of all networks.
OF_NETWORKS = {
    "_grouped_flash": ("llama",), "_grouped_math": ("llama",),
    "_plain": ("gpt",), "_chunked": ("gpt",), "_shared": ("gpt", "bert"), "_flash": ("gpt", "llama", "bert", "vit"),
    "_math": ("gpt", "llama", "bert", "vit"), "fp8": ("gpt", "llama", "bert"),  # of vit 4 x 17 rows are no multiple of 16
}


def update_in_backward(model, make):
    """Each parameter by an optimizer of its own, as soon as its gradient is there."""
    for parameter in model.parameters():
        own = make([parameter])

        def update(_, own=own):
            own.step()
            own.zero_grad()

        parameter.register_post_accumulate_grad_hook(update)


def make_network(network, case):
    if case.endswith("_plain"):
        return models.Gpt2(layers=2, width=128, heads=4, length=64, vocabulary=500, attention=models.PlainAttention)
    if network == "llama" and case in PRECISIONS and "_grouped" not in case:
        return models.Llama(layers=2, width=128, heads=4, kv_heads=4, inner=256, vocabulary=500)
    if case.endswith("_chunked"):
        return CHANGED["chunked_loss"][network]()
    model = NETWORKS[network][0]()
    if case.endswith("_shared"):
        layers = model.h if network == "gpt" else model.layer
        layers[1] = layers[0]
    return model


@contextlib.contextmanager
def products_in_tf32(allowed):
    """What PyTorch's defaults leave out: convolutions are in TF32 unless told otherwise, products are not."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def capture_precision(network, case, path):
    precision, kernels = PRECISIONS[case]
    with memwall_capture.fake(), sdpa_kernel(kernels), products_in_tf32(precision == "tf32"):
        with torch.device("cuda"):
            model = make_network(network, case)
        batch = NETWORKS[network][1]()
        if precision in ("bf16", "fp8"):
            model = model.to(torch.bfloat16)
            batch = tuple(t.to(torch.bfloat16) if t.is_floating_point() else t for t in batch)
        if precision == "fp8":
            from torchao.float8 import convert_to_float8_training
            model = convert_to_float8_training(model, module_filter_fn=lambda module, name: name != "head")
        optimizer = adamw(model.parameters(), fused=True if case.endswith("_fused") else None)
        scaler = torch.amp.GradScaler("cuda", enabled=precision == "amp_fp16")

        def train_step():
            low = torch.float16 if precision == "amp_fp16" else torch.bfloat16
            with torch.autocast("cuda", dtype=low, enabled=precision.startswith("amp_")):
                loss = model(*batch)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

        train_step()
        with memwall_capture.step(path, model=model, optimizer=optimizer, name=f"{network}-{case}"):
            train_step()


def capture(network, case, path):
    make, inputs, dtype = NETWORKS[network]
    make_optimizer, options, passes = CASES[case]
    make = CHANGED.get(case, {}).get(network, make)
    with memwall_capture.fake():
        with torch.device("cuda"):
            model = make()
        if dtype == "bf16":
            model = model.to(torch.bfloat16)
        if case == "pruned":  # masks of ones: which elements are 0 changes no kernel
            for module in model.modules():
                if isinstance(module, (torch.nn.Linear, torch.nn.Conv2d)):
                    torch.nn.utils.prune.identity(module, "weight")
        in_backward = case.endswith("in_backward")
        optimizer = in_backward or make_optimizer(model.parameters(), **options)
        if in_backward:
            update_in_backward(model, lambda parameters: make_optimizer(parameters, **options))
        batch = inputs()
        if case == "compiled_layers":
            for layer in (model.h if network == "gpt" else model.layers):
                layer.compile()
        call = torch.compile(model) if case == "compiled" else model

        def train_step():
            for _ in range(passes):
                with torch.autocast("cuda", dtype=torch.bfloat16, enabled=dtype == "amp"):
                    loss = call(*batch)
                if passes > 1:
                    loss = loss / passes
                loss.backward()
            if not in_backward:
                optimizer.step()
                optimizer.zero_grad()

        train_step()
        with memwall_capture.step(path, model=model, optimizer=None if in_backward else optimizer, name=f"{network}-{case}"):
            train_step()


def cases_of(network):
    cases = [case for case in CASES if network in CHANGED.get(case, NETWORKS) and network in ONLY.get(case, NETWORKS)]
    made = [case for case in PRECISIONS
            if all(network in networks for end, networks in OF_NETWORKS.items() if case.endswith(end))]
    return cases + made


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="NETWORK or NETWORK-CASE; all if absent")
    parser.add_argument("--out", default=HERE, help="folder to write to; the one of this script if absent")
    arguments = parser.parse_args()
    chosen = []
    for name in arguments.names or NETWORKS:
        network, _, case = name.partition("-")
        if network not in NETWORKS or (case and case not in CASES and case not in PRECISIONS):
            parser.error(f"there is no step {name!r}; expected one of {', '.join(NETWORKS)}, with or without '-' and one "
                         f"of {', '.join([*CASES, *PRECISIONS])} behind it")
        chosen += [(network, c) for c in ([case] if case else cases_of(network))]
    for network, case in chosen:
        path = os.path.join(arguments.out, f"{network}-{case}.mwc.gz")
        (capture_precision if case in PRECISIONS else capture)(network, case, path)
        print(f"{path}: {os.path.getsize(path)} bytes", flush=True)


if __name__ == "__main__":
    main()
