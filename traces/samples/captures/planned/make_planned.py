#!/usr/bin/env python3
"""Steps as PyTorch runs them under torch.utils.checkpoint and with an offload of activations (executed_offload.py), beside
the same steps without: what memwall makes of the unplanned capture is compared with the capture of the planned step.

    make_planned.py [NAME...] [--out DIR] [--memwall PROGRAM]   # the captures beside this file; needs torch, a minute
    make_planned.py --compare PROGRAM [NAME...]    # a table of simulated and executed; also of the full networks

How many storages an offload sends is in memwall's plan, so its program is asked; without it these are left out.

A name is NETWORK (all its cases) or NETWORK-CASE. The small networks are gpt, resnet, vit and llama; the others are
those of ../make_captures.py, of which nothing is committed here. Every step trains with AdamW, on fake tensors; the
second one is recorded. `tests/oracle/planned_captures_test.cpp` reads the committed ones.
"""

import argparse
import contextlib
import functools
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "..", "capture")]

import torch  # noqa: E402
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts  # noqa: E402

import memwall_capture  # noqa: E402
import models  # noqa: E402
from executed_offload import OffloadActivations  # noqa: E402
from make_captures import SAMPLES, images, words  # noqa: E402

aten = torch.ops.aten
MM = [aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default]
SDPA = [aten._scaled_dot_product_flash_attention.default, aten._scaled_dot_product_efficient_attention.default]
CONVOLUTION = [aten.convolution.default]

# network: (model, inputs, list of its blocks)
NETWORKS = {
    "gpt": (lambda: models.Gpt2(layers=3, width=256, heads=4, length=128, vocabulary=1000), words(8, 128, 1000), "h"),
    "resnet": (lambda: models.ResNet50(counts=(2, 2, 1, 1)), images(8), "blocks"),
    "vit": (lambda: models.Vit(layers=3, width=256, heads=4), images(8), "blocks"),
    "llama": (lambda: models.Llama(layers=3, width=256, heads=4, kv_heads=2, inner=512, vocabulary=1000),
              words(8, 128, 1000), "layers"),
    **{name: (SAMPLES[name][0], SAMPLES[name][1], blocks)
       for name, blocks in (("gpt2_124m", "h"), ("resnet50", "blocks"), ("vit_l", "blocks"), ("bert_large", "layer"),
                            ("llama3_8b", "layers"), ("mixtral_small", "layers"))},
}
PURE_BF16 = ("llama", "llama3_8b", "mixtral_small")  # the others: bf16 autocast
# Committed: cases of which another network does not show the same.
COMMITTED = {"gpt": None, "resnet": None, "vit": ("base", "full", "attention", "save_mm_sdpa", "offload_four_ahead"),
             "llama": ("base", "full", "attention", "save_mm_sdpa", "full_and_offload")}


def each(name, count):
    return [[f"{name}.{i}"] for i in range(count)]


def by_three(name, count):
    return [[f"{name}.{i}" for i in range(first, min(first + 3, count))] for first in range(0, count, 3)]


def stem(name, count):
    """torchvision's stem module by module, but for the ReLU, which works in place on what the norm makes."""
    return [["stem.0"], ["stem.1", "stem.2"], ["stem.3"]] + each(name, count)


# case: (units by the name and the number of blocks, options of checkpoint, what memwall is asked for)
OFFLOADED_FROM = 1 << 16  # bytes of a storage; smaller ones are not worth a copy
SENT = f"offload:what=activations,to=host,min_bytes={OFFLOADED_FROM},prefetch="
OFFLOAD = {
    "offload": (None, {"offload": {"ahead": 1}}, SENT + "1"),
    "offload_four_ahead": (None, {"offload": {"ahead": 4}}, SENT + "4"),
}
TRANSFORMER = {
    "base": (None, {}, None),
    "full": (each, {}, "checkpoint:mode=full"),
    "full_to_the_end": (each, {"early_stop": False}, "checkpoint:mode=full,early_stop=0"),
    "last_kept": (lambda name, count: each(name, count)[:-1], {}, "checkpoint:mode=full,last=keep"),
    "every_three": (by_three, {}, "checkpoint:every=3"),
    "first_two": (lambda name, count: each(name, count)[:2], {}, "checkpoint:layers=2"),
    "attention": (lambda name, count: [[f"{name}.{i}.attention"] for i in range(count)], {},
                  "checkpoint:modules={blocks}.*.attention"),
    "save_mm_sdpa": (each, {"save": MM + SDPA}, "selective:save=mm+sdpa"),
    "attention_save_mm_sdpa": (lambda name, count: [[f"{name}.{i}.attention"] for i in range(count)],
                               {"save": MM + SDPA}, "selective:save=mm+sdpa,modules={blocks}.*.attention"),
    "save_gelu": (each, {"save": [aten.gelu.default]}, "selective:save=gelu"),
    **OFFLOAD,
    "full_and_offload": (each, {"offload": {"ahead": 1}}, "checkpoint:mode=full " + SENT + "1"),
}
RESNET = {
    "base": (None, {}, None),
    "blocks": (each, {}, "checkpoint:modules=blocks.*"),
    "blocks_to_the_end": (each, {"early_stop": False}, "checkpoint:modules=blocks.*,early_stop=0"),
    "last_kept": (lambda name, count: each(name, count)[:-1], {}, "checkpoint:modules=blocks.*,last=keep"),
    "first_four": (lambda name, count: each(name, count)[:4], {}, "checkpoint:modules=blocks.*,layers=4"),
    "stem": (lambda name, count: [["stem"]], {}, "checkpoint:modules=stem"),
    "full": (stem, {}, "checkpoint:mode=full"),
    "every_three": (lambda name, count: [["stem"]] + by_three(name, count), {}, "checkpoint:every=3"),
    "save_convolution": (each, {"save": CONVOLUTION}, "selective:modules=blocks.*,save=convolution"),
    **OFFLOAD,
    "blocks_and_offload": (each, {"offload": {"ahead": 1}}, "checkpoint:modules=blocks.* " + SENT + "1"),
}


def cases(network):
    return RESNET if network.startswith("resnet") else TRANSFORMER


def run_as_unit(modules, options):
    """Where the first of the modules is called, all run one after the other under one checkpoint; the others pass on
    what they are given. They stay the modules that they are, names and hooks included."""
    kinds = [type(module) for module in modules]

    def chain(x, *others):
        for kind, module in zip(kinds, modules):
            x = kind.__call__(module, x, *others)
        return x

    def first(_self, *inputs):
        return checkpoint(chain, *inputs, use_reentrant=False, **options)

    def later(_self, x, *_others):
        return x

    for i, (kind, module) in enumerate(zip(kinds, modules)):
        module.__class__ = type(kind.__name__, (kind,), {"__call__": later if i else first})


def capture(network, case, path, first=None):
    make, inputs, blocks = NETWORKS[network]
    units, options, _ = cases(network)[case]
    options = dict(options)
    offload = options.pop("offload", None)
    if offload:
        offload = {"first": first, "min_bytes": OFFLOADED_FROM, **offload}
    if "save" in options:
        options["context_fn"] = functools.partial(create_selective_checkpoint_contexts, options.pop("save"))
    with memwall_capture.fake(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of hooks around selective checkpointing: the recorder's
        with torch.device("cuda"):
            model = make()
        if network in PURE_BF16:
            model = model.to(torch.bfloat16)
        for unit in units(blocks, len(getattr(model, blocks))) if units else []:
            run_as_unit([model.get_submodule(name) for name in unit], options)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        batch = inputs()
        offload = OffloadActivations([*model.parameters(), *model.buffers(), *batch], **offload) if offload else None

        def train_step():
            with (offload.forward() if offload else contextlib.nullcontext(),
                  torch.autocast("cuda", dtype=torch.bfloat16, enabled=network not in PURE_BF16)):
                loss = model(*batch)
            loss.backward()
            if offload:
                offload.end()
            optimizer.step()
            optimizer.zero_grad()

        train_step()
        with memwall_capture.step(path, model=model, optimizer=optimizer, name=f"{network}-{case}"):
            train_step()


def executed(path):
    """Kernels of forward and backward, the most bytes that live on the device, copies out and back and their bytes."""
    ops, live, peak, size, copied = 0, 0, 0, {}, {"hbm": [0, 0], "host_pinned": [0, 0]}
    with gzip.open(path, "rt") as lines:
        for r in (json.loads(line) for line in lines):
            if "storage" in r:
                size[r["storage"]] = r["bytes"] if r["place"] == "hbm" else 0
                live += size[r["storage"]] if r.get("preexisting") else 0
            elif "alloc" in r:
                live += size[r["alloc"]]
            elif "free" in r:
                live -= size[r["free"]]
            elif "op" in r and r["phase"] != "optimizer" and r.get("kernels", 1) > 0:
                ops += 1
            elif "copy" in r and {r["from"], r["to"]} == set(copied):
                copied[r["from"]][0] += 1
                copied[r["from"]][1] += r["copy"]
            peak = max(peak, live)
    return ops, peak, copied["hbm"] + copied["host_pinned"]


def is_offload(network, case):
    return "offload" in cases(network)[case][1]


def policy_of(network, case):
    return cases(network)[case][2].format(blocks=NETWORKS[network][2])


def travelling(memwall, base, policy):
    """Of memwall's plan for the unplanned capture: how many storages travel, the first ones that autograd saves."""
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "step.plan")
        command = [memwall, "run", base, "--machine", "h100-sxm-80gb", "--plan-out", plan]
        for one in policy.split():
            command += ["--policy", one]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(plan) as file:
            return json.load(file)["realization"]["offload"][0]["first"]


def simulated(memwall, path, policy=None):
    """(ops computed again, peak in bytes, step time in ms) or a sentence."""
    command = [memwall, "run", path, "--machine", "h100-sxm-80gb", "--format", "json"]
    for one in policy.split() if policy else []:
        command += ["--policy", one]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().splitlines()[0]
    run = json.loads(done.stdout)
    again = re.search(r"(\d+) ops? of \S+ \S+ computed again", done.stdout)
    return int(again.group(1)) if again else 0, run["tiers"]["hbm"]["peak_requested_bytes"], 1e3 * run["step_time_s"]


def compare(memwall, chosen):
    print("| step | ops sim | ops real | peak sim | peak real | diff | step sim (ms) | real | diff |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        bases = {}
        for network, case in chosen:
            if network not in bases:
                bases[network] = os.path.join(folder, f"{network}.mwc.gz")
                capture(network, "base", bases[network])
            if case == "base":
                continue
            path, policy = os.path.join(folder, "planned.mwc.gz"), policy_of(network, case)
            capture(network, case, path, travelling(memwall, bases[network], policy) if is_offload(network, case) else None)
            sim = simulated(memwall, bases[network], policy)
            if isinstance(sim, str):
                print(f"| {network}-{case} | {sim} |")
                continue
            ops, peak, copied = executed(path)
            step = simulated(memwall, path)[2]
            print(f"| {network}-{case} | {sim[0]} | {ops - executed(bases[network])[0]} | {sim[1]} | {peak} | "
                  f"{100 * (sim[1] / peak - 1):+.2f} % | {sim[2]:.2f} | {step:.2f} | {100 * (sim[2] / step - 1):+.1f} % |"
                  + (f" copied {copied} |" if is_offload(network, case) else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="NETWORK or NETWORK-CASE; the committed ones if absent")
    parser.add_argument("--out", default=HERE, help="folder to write to; the one of this script if absent")
    parser.add_argument("--memwall", metavar="PROGRAM", help="the program: capture offloads, too")
    parser.add_argument("--compare", metavar="PROGRAM", help="the program: print a table, write nothing")
    arguments = parser.parse_args()
    chosen = []
    for name in arguments.names:
        network, _, case = name.partition("-")
        if network not in NETWORKS or (case and case not in cases(network)):
            parser.error(f"there is no step {name!r}; expected one of {', '.join(NETWORKS)}, or one with a case behind '-'")
        chosen += [(network, c) for c in ([case] if case else cases(network))]
    if not arguments.names:
        chosen = [(network, case) for network, some in COMMITTED.items() for case in some or cases(network)]
    if arguments.compare:
        compare(arguments.compare, chosen)
        return
    for network, case in chosen:
        path, first = os.path.join(arguments.out, f"{network}-{case}.mwc.gz"), None
        if is_offload(network, case):
            if not arguments.memwall:
                continue
            first = travelling(arguments.memwall, os.path.join(HERE, f"{network}-base.mwc.gz"), policy_of(network, case))
        capture(network, case, path, first)
        print(f"{path}: {os.path.getsize(path)} bytes", flush=True)


if __name__ == "__main__":
    main()
