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


class Updating(Gpt):
    """Its first block has a buffer that each run updates."""

    def __init__(self, how):
        super().__init__()
        self.h[0] = _Mean(how)


class _Mean(torch.nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how, self.inner = how, torch.nn.Linear(16, 16)
        self.register_buffer("mean", torch.zeros(16))

    def forward(self, x, debug=False):
        if self.how == "in place":
            self.mean.mul_(0.9).add_(x.detach().mean((0, 1)))
        elif self.how == "a part":
            self.mean[1:].mul_(0.9).add_(1)
        elif self.how == "anew":
            self.mean = self.mean * 0.9 + x.detach().mean((0, 1))
        return (self.inner(x - self.mean).tanh() + 1).mul_(2 if debug else 1)


@pytest.mark.parametrize("how", ["in place", "a part", "anew"])
def test_a_buffer_that_each_run_updates(tmp_path, how):
    with pytest.raises(Exception, match="The unit h.0 updates (a buffer of shape|its buffer mean).* whenever it runs"):
        train(Updating(how), prepare=compiled(tmp_path, units(["h.0"]), True))


def test_operators_in_place_on_what_a_unit_makes(tmp_path):
    torch.manual_seed(0)
    plain = Updating("not at all")
    planned = copy.deepcopy(plain)
    expected = train(plain, prepare=compiled(tmp_path, None, True))
    torch._dynamo.reset()
    assert same(expected, train(planned, prepare=compiled(tmp_path, units(["h.0"]), True)))


class WithKeyword(Updating):
    def __init__(self):
        super().__init__("not at all")

    def forward(self, words, targets):
        x = self.h[0](self.embedding(words), debug=True)
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


def test_a_keyword_that_checkpointing_has_too(tmp_path):
    results = []
    for realization in (None, units(["h.0"])):
        torch.manual_seed(0)
        torch._dynamo.reset()
        model = compiled(tmp_path, realization, True)(WithKeyword(), None)
        words = torch.arange(32).reshape(4, 8)
        loss = model(words, words)
        loss.backward()
        results.append([loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)])
    assert same(*results)
