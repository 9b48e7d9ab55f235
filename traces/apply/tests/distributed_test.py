"""Plans under DistributedDataParallel and fully_shard, by two processes with gloo: equal to the same without a plan."""

import copy
import os
import sys

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import HOST_OPTIMIZER, Gpt, lazy, offload, saved_sizes, same, train, units, write_plan  # noqa: E402

import memwall_apply  # noqa: E402

BLOCKS = units(["h.0"], ["h.1"], ["h.2"], ["h.3"])
GELU = lazy(*[[(f"h.{i}", "aten::gelu")] for i in range(4)])


def realization_of(name, model):
    if name == "offload":
        return offload(saved_sizes(copy.deepcopy(model)), 2, 1)
    return {"blocks": BLOCKS, "selective": units(["h.0"], ["h.1"], save_ops=["aten::addmm"]), "operators": GELU,
            "groups": units(["h.0", "h.1"], ["h.2", "h.3"]), "optimizer": HOST_OPTIMIZER}[name]


def worker(rank, folder, wrapping, name, queue):
    os.environ.update(MASTER_ADDR="127.0.0.1", GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    try:
        results = []
        for planned in (False, True):
            torch.manual_seed(0)
            model = Gpt(layers=4)
            if planned:
                plan = write_plan(os.path.join(folder, f"{rank}.plan"), model, realization_of(name, model))
            results.append(_train(model, wrapping, plan if planned else None, rank))
        queue.put((rank, same(*results), ""))
    except Exception as e:  # noqa: BLE001
        queue.put((rank, False, f"{type(e).__name__}: {e}"))
    finally:
        dist.destroy_process_group()


def _train(model, wrapping, plan, rank):
    def prepare(inner, optimizer):
        if plan is not None:
            memwall_apply.apply(inner, plan, optimizer)
        return torch.nn.parallel.DistributedDataParallel(inner)

    torch.manual_seed(rank)
    if wrapping == "ddp":
        return train(model, steps=3, prepare=prepare)
    from torch.distributed.fsdp import fully_shard
    mesh = torch.distributed.init_device_mesh("cpu", (2,))
    if plan is not None:
        memwall_apply.apply(model, plan)
    if wrapping == "fsdp":
        for block in model.h:
            fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return [getattr(t, "_local_tensor", t) for t in train(model, steps=3)]


def run(tmp_path, wrapping, name):
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [context.Process(target=worker, args=(rank, str(tmp_path), wrapping, name, queue)) for rank in range(2)]
    for process in processes:
        process.start()
    answers = sorted(queue.get(timeout=120) for _ in processes)
    for process in processes:
        process.join(30)
    return answers


@pytest.mark.parametrize("name", ["blocks", "selective", "operators", "groups", "offload", "optimizer"])
def test_ddp_steps_are_equal(tmp_path, name):
    for _, equal, error in run(tmp_path, "ddp", name):
        assert equal, error


@pytest.mark.parametrize("name", ["blocks", "selective", "operators", "offload"])
def test_sharded_steps_are_equal(tmp_path, name):
    for _, equal, error in run(tmp_path, "fsdp", name):
        assert equal, error


def test_groups_are_equal_where_the_model_is_sharded_as_one(tmp_path):
    for _, equal, error in run(tmp_path, "whole", "groups"):
        assert equal, error


def test_groups_of_separately_sharded_blocks_are_refused(tmp_path):
    for _, _, error in run(tmp_path, "fsdp", "groups"):
        assert error.startswith("ApplyError: The plan runs h.0 + h.1 again as one unit, and fully_shard was called on each")
