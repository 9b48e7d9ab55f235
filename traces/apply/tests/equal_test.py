"""Is a planned run the unplanned one? Losses, gradients, weights, buffers and states of five steps, bit for bit."""

import copy

import pytest
import torch

from programs import HOST_OPTIMIZER, Gpt, ResNet, lazy, offload, saved_sizes, same, train, units, write_plan

import memwall_apply

MLP = [[(f"h.{i}.norm2", "aten::native_layer_norm"), (f"h.{i}.up", "aten::addmm"), (f"h.{i}", "aten::gelu")] for i in range(4)]
GPT = {
    "blocks": units(["h.0"], ["h.1"], ["h.2"], ["h.3"]),
    "to_the_end": units(["h.0"], ["h.1"], early_stop=False),
    "groups": units(["h.0", "h.1"], ["h.2", "h.3"]),
    "inside_a_block": units(["h.0.norm1"], ["h.1.norm2"], ["h.2.up"]),
    "selective": units(["h.0"], ["h.1"], ["h.2"], save_ops=["aten::addmm", "aten::bmm"]),
    "one_operator": lazy(*[[(f"h.{i}", "aten::gelu")] for i in range(4)]),
    "groups_of_operators": lazy(*MLP),
    "units_and_operators": {**units(["h.0"], ["h.1"]), **lazy(*MLP[2:])},
    "optimizer": HOST_OPTIMIZER,
    "units_and_optimizer": {**units(["h.0"], ["h.1"]), **HOST_OPTIMIZER},
}
RESNET = {
    "blocks": units(["blocks.0"], ["blocks.1"], ["blocks.2"]),
    "to_the_end": units(["blocks.0"], ["blocks.1"], early_stop=False),
    "groups": units(["blocks.0", "blocks.1", "blocks.2"]),
    "inside_a_block": units(["blocks.1.norm1", "blocks.1.relu"]),
    "optimizer": HOST_OPTIMIZER,
}
CASES = [(Gpt, name) for name in GPT] + [(ResNet, name) for name in RESNET]
SETTINGS = {"fp32": {}, "bf16": {"autocast": True}, "accumulation": {"accumulation": 2}, "clipped": {"clip": 0.1}}


def plan_of(kind, name):
    return (GPT if kind is Gpt else RESNET)[name]


def pair(kind, dropout=0.0):
    torch.manual_seed(0)
    model = kind(dropout=dropout)
    return model, copy.deepcopy(model)


def applied(tmp_path, realization):
    def prepare(model, optimizer):
        plan = write_plan(tmp_path / "step.plan", model, realization)
        prepare.applied = memwall_apply.apply(model, plan, optimizer)
        return model
    return prepare


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_planned_steps_are_equal(tmp_path, kind, name, setting):
    plain, planned = pair(kind)
    prepare = applied(tmp_path, plan_of(kind, name))
    assert same(train(plain, **SETTINGS[setting]), train(planned, prepare=prepare, **SETTINGS[setting]))
    assert any(prepare.applied.counts.get(key) for key in ("unit_reruns", "operators_rerun", "host_steps"))


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_random_numbers_are_drawn_as_without_a_plan(tmp_path, kind, name):
    plain, planned = pair(kind, dropout=0.3)
    assert same(train(plain), train(planned, prepare=applied(tmp_path, plan_of(kind, name))))


class Noisy(Gpt):
    """Keeps the random numbers that it draws for backward."""

    def __init__(self, **others):
        super().__init__(**others)
        self.noise = torch.nn.ModuleList(_Noise() for _ in range(2))

    def forward(self, words, targets):
        x = self.noise[1](self.noise[0](self.embedding(words)))
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


class _Noise(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(16))

    def forward(self, x):
        return x * self.scale * torch.rand_like(x)


def test_an_operator_that_runs_again_draws_the_same_numbers(tmp_path):
    plain, planned = pair(Noisy)
    for p in [*plain.h.parameters(), *plain.norm.parameters(), *planned.h.parameters(), *planned.norm.parameters()]:
        p.requires_grad_(False)  # these layers are not used
    draws = lazy([("noise.0", "aten::rand_like")], [("noise.1", "aten::rand_like")])
    prepare = applied(tmp_path, draws)
    assert same(train(plain), train(planned, prepare=prepare))
    assert prepare.applied.counts["operators_rerun"] == 2 * 5


@pytest.mark.parametrize("setting", [*SETTINGS, "dropout"])
@pytest.mark.parametrize(("buffers", "ahead"), [(0, 0), (2, 1), (5, 4), (100, 100)])
@pytest.mark.parametrize("kind", [Gpt, ResNet])
def test_offloaded_steps_are_equal(tmp_path, kind, buffers, ahead, setting):
    plain, planned = pair(kind, dropout=0.3 if setting == "dropout" else 0.0)
    settings = SETTINGS.get(setting, {})
    sizes = saved_sizes(copy.deepcopy(planned), settings.get("autocast", False))
    prepare = applied(tmp_path, offload(sizes, buffers, ahead))
    assert same(train(plain, **settings), train(planned, prepare=prepare, **settings))
    counts = prepare.applied.counts
    assert counts["sent"] == counts["back"] == (len(sizes) - 1) * counts["passes"]
    assert counts["host_bytes"] <= sum(-(-size // 512) * 512 for size in sizes)  # the same memory in every step


def test_parameters_that_the_program_changes_are_updated_from_there(tmp_path):
    """Loaded or clamped, with the optimizer on the host."""
    plain, planned = pair(Gpt)
    other = Gpt().state_dict()

    prepare = applied(tmp_path, HOST_OPTIMIZER)
    results = []
    for model, how in ((plain, None), (planned, prepare)):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
        if how:
            how(model, optimizer)
        torch.manual_seed(2)
        for step in range(4):
            model(*model.batch()).backward()
            optimizer.step()
            optimizer.zero_grad()
            if step == 1:
                model.load_state_dict(other)
            with torch.no_grad():
                for p in model.parameters():
                    p.clamp_(-0.2, 0.2)
        results.append([t.clone() for t in model.state_dict().values()])
    assert same(*results)
