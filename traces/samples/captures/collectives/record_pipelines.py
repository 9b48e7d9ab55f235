#!/usr/bin/env python3
"""Which passes, messages, gathers and reductions the ranks of a pipeline run in a step, in order, under
torch.distributed.pipelining with fully_shard in each stage, as torchtitan builds them: recorded in real processes
(gloo, on the CPU). Beside them the actions of torch's interleaved schedule alone, for more ranks.

    record_pipelines.py [--out DIR]          # recorded_pipelines.json; needs torch, a minute

`tests/oracle/recorded_pipelines_test.cpp` compares both with generated jobs.
"""

import argparse
import copy
import datetime
import json
import os
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.pipelining import PipelineStage, schedules  # noqa: E402

import models  # noqa: E402
from recorder import CollectiveRecorder  # noqa: E402

STEPS = 3  # the last one is recorded
SIZES = {"layers": 8, "width": 256, "heads": 4, "kv_heads": 2, "inner": 512, "vocabulary": 1024}
LENGTH, MICRO_BATCH, PIPELINE, SHARDS = 64, 2, 2, 2
# name: (schedule, stages of each rank, micro-batches)
CASES = {"1f1b": ("1F1B", 1, 4), "gpipe": ("GPipe", 1, 3), "interleaved": ("Interleaved1F1B", 2, 4),
         "interleaved-odd": ("Interleaved1F1B", 2, 3), "interleaved-3": ("Interleaved1F1B", 3, 6)}
# (ranks, stages of each, micro-batches) of schedules without processes
SCHEDULES = [(2, 2, 2), (2, 2, 3), (2, 3, 4), (3, 2, 6), (4, 2, 4), (4, 2, 8), (4, 2, 10), (4, 3, 8), (4, 4, 6), (4, 5, 3),
             (8, 2, 8), (8, 2, 16), (5, 3, 14)]


def layers_of_stages(layers, stages):
    """torchtitan 0.2.2, generate_llm_fqn_per_model_part, with weights of one."""
    counts = [(layers + 2) // stages + (s < (layers + 2) % stages) for s in range(stages)]
    counts[0] -= 1
    counts[-1] -= 1
    return counts


class Part(nn.Module):
    """One stage of a Llama."""

    def __init__(self, whole, first, count, last):
        super().__init__()
        self.rotation_of = whole.rotation
        self.words = whole.words if first == 0 else None
        self.layers = nn.ModuleList(whole.layers[first:first + count])
        self.norm, self.head = (whole.norm, whole.head) if last else (None, None)

    def forward(self, x):
        x = self.words(x) if self.words is not None else x
        cosine, sine = self.rotation_of(LENGTH, x.dtype, x.device)
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return self.head(self.norm(x)) if self.head is not None else x


def shard(part, mesh):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    options = {"mesh": mesh, "reshard_after_forward": False,
               "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
    if part.words is not None:
        fully_shard(part.words, **options)
    for layer in part.layers:
        fully_shard(layer, **options)
    if part.head is not None:
        fully_shard([part.norm, part.head], **options)
    fully_shard(part, **options)
    return part


class Recorder(CollectiveRecorder):
    """Passes and messages of the schedule beside the collectives."""

    def note_passes(self, stage):
        forward, backward = stage.forward_one_chunk, stage.backward_one_chunk

        def run_forward(chunk, *args, **kwargs):
            self.note("forward", stage.stage_index, chunk)
            return forward(chunk, *args, **kwargs)

        def run_backward(chunk, *args, **kwargs):
            self.note("backward", stage.stage_index, chunk)
            return backward(chunk, *args, **kwargs)

        stage.forward_one_chunk, stage.backward_one_chunk = run_forward, run_backward

    def note(self, kind, stage, microbatch):
        self.calls.append({"kind": kind, "stage": stage, "microbatch": microbatch})

    def note_messages(self):
        inner, self.is_outermost = schedules._batch_p2p, True

        def batch(ops, desc=None):
            if self.is_outermost and ops:
                self.calls.append({"kind": "messages", "all": [
                    {"send": op.op is dist.isend, "peer": op.peer // SHARDS,
                     "bytes": op.tensor.numel() * op.tensor.element_size()} for op in ops]})
            outermost, self.is_outermost = self.is_outermost, False
            works = inner(ops, desc)
            self.is_outermost = outermost
            return works

        schedules._batch_p2p = batch
        return inner


def step_of(name):
    schedule_name, per_rank, microbatches = CASES[name]
    mesh = init_device_mesh("cpu", (PIPELINE, SHARDS), mesh_dim_names=("pp", "dp"))
    rank, stages = mesh["pp"].get_local_rank(), PIPELINE * per_rank
    torch.manual_seed(0)
    whole = models.Llama(**SIZES)
    counts = layers_of_stages(SIZES["layers"], stages)
    own = []
    for index in range(rank, stages, PIPELINE):
        part = shard(Part(copy.deepcopy(whole), sum(counts[:index]), counts[index], index + 1 == stages), mesh["dp"])
        own.append(PipelineStage(part, index, stages, torch.device("cpu"), group=mesh["pp"].get_group()))
    kind = schedules.get_schedule_class(schedule_name)
    schedule = kind(own[0] if per_rank == 1 else own, microbatches, scale_grads=False,
                    loss_fn=lambda out, targets: F.cross_entropy(out.float().flatten(0, 1), targets.flatten()))
    optimizer = torch.optim.AdamW([p for stage in own for p in stage.submod.parameters()], lr=1e-4)
    words = torch.randint(0, SIZES["vocabulary"], (MICRO_BATCH * microbatches, LENGTH))
    recorder = Recorder()

    def run():
        first, last = any(s.is_first for s in own), any(s.is_last for s in own)
        schedule.step(*([words] if first else []), **({"target": words, "losses": []} if last else {}))
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(STEPS - 1):
        run()
    for stage in own:
        recorder.note_passes(stage)
    inner = recorder.note_messages()
    with recorder:
        run()
    schedules._batch_p2p = inner
    return recorder.calls


def kept(call):
    """As the file has it."""
    if call["kind"] in ("forward", "backward", "messages"):
        return call
    return {"kind": call["kind"], "bytes": call["bytes"], "ranks": call["ranks"]}


def work(rank, ranks, store, path):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(minutes=5))
    found = {}
    for name in CASES:
        calls = [None] * ranks
        dist.all_gather_object(calls, [kept(call) for call in step_of(name)])
        found[name] = calls[::SHARDS]  # of the first shard of each stage
        if rank == 0:
            print(f"{name}: {[len(own) for own in found[name]]} calls", flush=True)
    if rank == 0:
        with open(path, "w") as file:
            json.dump(found, file)
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)


def record():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "found.json")
        ranks = PIPELINE * SHARDS
        torch.multiprocessing.spawn(work, args=(ranks, os.path.join(folder, "store"), path), nprocs=ranks)
        with open(path) as file:
            return json.load(file)


def actions_of(ranks, per_rank, microbatches):
    """Of all ranks, as torch writes actions ("0F1", "4SEND_B2"); in one process, whose group is a fake one."""
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
    stages = [PipelineStage(nn.Linear(1, 1), index, ranks * per_rank, torch.device("cpu"))
              for index in range(0, ranks * per_rank, ranks)]
    schedule = schedules.ScheduleInterleaved1F1B(stages, microbatches, loss_fn=lambda out, targets: out.sum())
    order = [" ".join(str(action) for action in schedule.pipeline_order_with_comms[rank]) for rank in range(ranks)]
    dist.destroy_process_group()
    return order


def write(path, found):
    text = [f'{{"torch": {json.dumps(".".join(torch.__version__.split(".")[:2]))}, "length": {LENGTH}, '
            f'"micro_batch": {MICRO_BATCH}, "network": {json.dumps(SIZES)}, "cases": [']
    for number, (name, ranks) in enumerate(found.items()):
        schedule, per_rank, microbatches = CASES[name]
        head = {"name": name, "schedule": schedule, "stages_per_rank": per_rank, "microbatches": microbatches,
                "pipeline": PIPELINE, "shards": SHARDS}
        text.append(json.dumps(head)[:-1] + ', "ranks": [')
        for rank, calls in enumerate(ranks):
            text.append(" [")
            text += ["  " + json.dumps(call) + ("," if i + 1 < len(calls) else "") for i, call in enumerate(calls)]
            text.append(" ]" + ("," if rank + 1 < len(ranks) else ""))
        text.append("]}" + ("," if number + 1 < len(found) else ""))
    text.append('], "schedules": [')
    for number, sizes in enumerate(SCHEDULES):
        row = dict(zip(("ranks", "stages_per_rank", "microbatches"), sizes), actions=actions_of(*sizes))
        text.append(json.dumps(row) + ("," if number + 1 < len(SCHEDULES) else ""))
    with open(path, "w") as file:
        file.write("\n".join(text) + "\n]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", default=HERE, help="folder to write to; the one of this script if absent")
    write(os.path.join(parser.parse_args().out, "recorded_pipelines.json"), record())


if __name__ == "__main__":
    main()
