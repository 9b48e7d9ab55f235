#!/usr/bin/env python3
"""Which collectives PyTorch's DistributedDataParallel, fully_shard and FullyShardedDataParallel and DeepSpeed call in a
step, in order, with bytes and group: recorded in real processes (gloo, on the CPU), beside captures of the same
networks in one process, on fake tensors.

    record_collectives.py [CASE...] [--out DIR]          # recorded.json and the captures; needs torch, 2 minutes

`recorded.json` has one case per framework and setting, and memwall's policy for it. A step is recorded once it is as
all later ones are: the fourth (DistributedDataParallel's buckets are made anew in the second, DeepSpeed's order of
modules is known from then on). Every rank records; they must agree. `tests/oracle/recorded_collectives_test.cpp`
compares with the policies.
"""

import argparse
import contextlib
import datetime
import json
import os
import random
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "capture")]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from cases import CASES  # noqa: E402
from networks import NETWORKS  # noqa: E402

STEPS = 4  # the last one is recorded


def made(case, device):
    make, inputs = NETWORKS[case.network]
    torch.manual_seed(0)
    random.seed(0)
    with torch.device(device):
        module = make()
    return module.to(torch.bfloat16) if case.precision == "bf16" else module, inputs(device)


# ---- in one process, on fake tensors ----

def capture(case, path):
    import memwall_capture
    with memwall_capture.fake():
        module, batch = made(case, "cuda")
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)

        def train_step():
            for _ in range(case.passes):
                with torch.autocast("cuda", dtype=torch.bfloat16, enabled=case.precision == "mixed"):
                    loss = module(*batch)
                loss.backward()
            if case.clip == "captured":
                torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

        train_step()
        with memwall_capture.step(path, model=module, optimizer=optimizer, name=case.base()):
            train_step()


# ---- in several processes ----

def recorded_step(case):
    from recorder import CollectiveRecorder
    from wrapped import wrap
    module, batch = made(case, "cpu")
    training = wrap(case, module, batch)
    recorder = CollectiveRecorder()
    for step in range(STEPS):
        with recorder if step == STEPS - 1 else contextlib.nullcontext():
            for number in range(case.passes):
                with training.leave_out(case.sync if number < case.passes - 1 else ""):
                    recorder.phase = "forward"
                    loss = training.forward(batch)
                    recorder.phase = "backward"
                    training.backward(loss)
                recorder.phase = "optimizer"
                training.end_pass()
            training.update(case.clip)
    return recorder.calls


def require_agreement(name, calls):
    """All ranks call the same collectives; each with a group of its own, as large."""
    def without_ranks(own):
        return [{**call, "ranks": len(call["ranks"])} for call in own]
    for rank, own in enumerate(calls):
        if without_ranks(own) != without_ranks(calls[0]):
            raise RuntimeError(f"Case {name}: rank {rank} calls other collectives than rank 0.")
        if any(rank not in call["ranks"] for call in own):
            raise RuntimeError(f"Case {name}: rank {rank} is not in the group of one of its collectives.")


def work(rank, ranks, names, store, path):
    """One rank's process. Rank 0 writes what it called, case by case."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(minutes=5))
    if any(CASES[name].framework == "deepspeed" for name in names):
        from wrapped import start_deepspeed
        start_deepspeed(rank, ranks)
    found = {}
    for name in names:
        calls = [None] * ranks
        dist.all_gather_object(calls, recorded_step(CASES[name]))
        require_agreement(name, calls)
        found[name] = calls[0]
        if rank == 0:
            print(f"{name}: {len(calls[0])} collectives", flush=True)
    if rank == 0:
        with open(path, "w") as file:
            json.dump(found, file)
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # threads of gloo and of the reducer may outlive what they use, and abort at a usual exit


def record(names):
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        jobs = {}  # DeepSpeed changes PyTorch for its process: it has one to itself
        for name in names:
            jobs.setdefault((CASES[name].ranks, CASES[name].framework == "deepspeed"), []).append(name)
        for number, ((ranks, _), chosen) in enumerate(jobs.items()):
            path = os.path.join(folder, f"{number}.json")
            torch.multiprocessing.spawn(work, args=(ranks, chosen, os.path.join(folder, f"store{number}"), path),
                                        nprocs=ranks)
            with open(path) as file:
                found |= json.load(file)
    return found


def write(path, found):
    """One line per collective."""
    text = [f'{{"torch": {json.dumps(".".join(torch.__version__.split(".")[:2]))}, "cases": [']
    for number, (name, calls) in enumerate(found.items()):
        case = CASES[name]
        head = {"name": name, "capture": case.base(), "ranks": case.ranks, "policy": case.policies()}
        text.append(json.dumps(head)[:-1] + ', "collectives": [')
        text += ["  " + json.dumps(call) + ("," if i + 1 < len(calls) else "") for i, call in enumerate(calls)]
        text.append("]}" + ("," if number + 1 < len(found) else ""))
    with open(path, "w") as file:
        file.write("\n".join(text) + "\n]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all if absent")
    parser.add_argument("--out", default=HERE, help="folder to write to; the one of this script if absent")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in CASES:
            parser.error(f"there is no case {name!r}; expected one of {', '.join(CASES)}")
    names = [name for name in CASES if name in arguments.names or not arguments.names]
    found = record(names)
    write(os.path.join(arguments.out, "recorded.json"), {name: found[name] for name in names})
    for case in {CASES[name].base(): CASES[name] for name in names}.values():
        capture(case, os.path.join(arguments.out, f"{case.base()}.mwc.gz"))


if __name__ == "__main__":
    main()
