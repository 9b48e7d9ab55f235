"""Plans under torch.compile (aot_eager: forward and backward as graphs, no code generator)."""

import copy

import pytest
import torch

from programs import Gpt, ResNet, offload, same, train, units, write_plan

import memwall_apply

PLANS = {"blocks": (Gpt, units(["h.0"], ["h.1"], ["h.2"])), "groups": (Gpt, units(["h.0", "h.1"], ["h.2", "h.3"])),
         "selective": (Gpt, units(["h.0"], ["h.1"], save_ops=["aten::addmm"])),
         "batch_norm": (ResNet, units(["blocks.0"], ["blocks.1"]))}


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(tmp_path, realization, whole):
    def prepare(model, optimizer):
        if realization is not None:
            memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, realization), optimizer)
        if whole:
            return torch.compile(model, backend="aot_eager")
        for block in getattr(model, "h", None) or model.blocks:
            block.compile(backend="aot_eager")
        return model
    return prepare


@pytest.mark.parametrize("whole", [True, False], ids=["model", "blocks"])
@pytest.mark.parametrize("name", PLANS)
def test_planned_steps_are_equal(tmp_path, name, whole):
    kind, realization = PLANS[name]
    torch.manual_seed(0)
    plain = kind()
    planned = copy.deepcopy(plain)
    expected = train(plain, prepare=compiled(tmp_path, None, whole))
    torch._dynamo.reset()
    assert same(expected, train(planned, prepare=compiled(tmp_path, realization, whole)))


@pytest.mark.parametrize("whole", [True, False], ids=["model", "blocks"])
def test_what_travels_is_refused(tmp_path, whole):
    realization = offload([4 * 8 * 16 * 4] * 3)
    with pytest.raises(Exception, match="compiled"):
        train(Gpt(), prepare=compiled(tmp_path, realization, whole))


def test_a_compiled_model_is_refused(tmp_path):
    model = Gpt()
    plan = write_plan(tmp_path / "step.plan", model, units(["h.0"]))
    model.h[1].compile(backend="aot_eager")
    with pytest.raises(memwall_apply.ApplyError, match="before compile"):
        memwall_apply.apply(model, plan)
