#!/usr/bin/env python3
"""Captures of a network of the differential test, on fake CUDA tensors: as it is, and as memory plans make it.

    execute.py FAMILY --base OUT.mwc.gz          # its second step, without a plan
    execute.py FAMILY --plans DIR --out DIR      # of every DIR/NAME.plan: NAME.mwc.gz, or NAME.refused with the sentence

The plan is put into the network by memwall_apply (traces/apply); the training loop knows nothing of it. The second step
is recorded, as the first makes the optimizer's state. An error that is no refusal of memwall_apply is in NAME.failed.
"""

import argparse
import os
import sys
import traceback
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
TRACES = os.path.join(HERE, "..", "..", "traces")
sys.path[:0] = [HERE, os.path.join(TRACES, "capture"), os.path.join(TRACES, "apply")]

import torch  # noqa: E402

import memwall_capture  # noqa: E402
import networks  # noqa: E402


def capture(family, path, plan=None):
    with memwall_capture.fake(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of hooks around selective checkpointing
        model, batch, autocast = networks.make(family)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        if plan is not None:
            import memwall_apply

            memwall_apply.apply(model, memwall_apply.load(plan), optimizer)

        def train_step():
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
                loss = model(*batch)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        train_step()
        with memwall_capture.step(path, model=model, optimizer=optimizer, name=family):
            train_step()


def execute(family, plan, out):
    """Leaves one file at `out`, which gets its ending."""
    import memwall_apply

    try:
        capture(family, out + ".mwc.gz", plan)
    except Exception as error:
        is_refusal = isinstance(error, memwall_apply.ApplyError)
        if os.path.exists(out + ".mwc.gz"):
            os.remove(out + ".mwc.gz")
        with open(out + (".refused" if is_refusal else ".failed"), "w") as file:
            file.write(str(error) if is_refusal else traceback.format_exc())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("family", choices=networks.FAMILIES)
    parser.add_argument("--base", metavar="OUT", help="capture the step without a plan")
    parser.add_argument("--plans", metavar="DIR", help="plans to put into the network, one after the other")
    parser.add_argument("--out", metavar="DIR", help="where captures and refusals go")
    arguments = parser.parse_args()
    if (arguments.plans is None) != (arguments.out is None) or (arguments.base is None) == (arguments.plans is None):
        parser.error("expected --base OUT, or --plans DIR and --out DIR")
    if arguments.base:
        capture(arguments.family, arguments.base)
        return
    for name in sorted(os.listdir(arguments.plans)):
        if name.endswith(".plan"):
            execute(arguments.family, os.path.join(arguments.plans, name),
                    os.path.join(arguments.out, name[:-len(".plan")]))


if __name__ == "__main__":
    main()
