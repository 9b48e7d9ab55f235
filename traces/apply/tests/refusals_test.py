"""What cannot be carried out is refused with a sentence."""

import copy
import gzip
import json
import pickle

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from programs import HOST_OPTIMIZER, Gpt, ResNet, lazy, offload, saved_sizes, train, units, write_plan

import memwall_apply
from memwall_apply import refusals


def refused(model, tmp_path, realization, match, optimizer=None, **changes):
    with pytest.raises(memwall_apply.ApplyError, match=match):
        memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, realization, **changes), optimizer)


def refused_in_training(model, tmp_path, realization, match):
    def prepare(inner, optimizer):
        memwall_apply.apply(inner, write_plan(tmp_path / "step.plan", inner, realization), optimizer)
        return inner
    with pytest.raises(memwall_apply.ApplyError, match=match):
        train(model, steps=1, prepare=prepare)


# ---- files

def document(tmp_path, **changes):
    path = tmp_path / "step.plan"
    write_plan(path, Gpt(), units(["h.0"]))
    content = json.loads(path.read_text())
    for key, value in changes.items():
        if value is None:
            del content[key]
        else:
            content[key] = value
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(("changes", "match"), [
    ({"format": "other"}, r'format: found "other"; expected "memwall-plan"'),
    ({"version": 2}, "version: found 2; expected 1"),
    ({"realization": None}, "no member 'realization'"),
    ({"realization": {"forwards": "1"}}, r'realization.forwards: found "1"; expected a whole number'),
    ({"realization": {"forwards": 1, "recompute": [{"units": [["h.0", 1]]}]}}, r"recompute\[0\].units\[0\]: found .* a list of words"),
    ({"realization": {"forwards": 1, "unnamed": [{"what": "drop", "reason": "Nobody uses it."}]}}, "--executable=torch"),
    ({"realization": {"forwards": 1, "offload": [{"tier": "nvme", "through": "host"}]}}, "nvme through host; PyTorch's hooks send"),
    ({"realization": {"forwards": 1, "offload": [{"tier": "host"}]}}, "no member 'moves'"),
    ({"realization": {"forwards": 1, "homes": [{"kind": "gradient", "tier": "host"}]}}, "keeps gradients in tier 'host'"),
])
def test_a_plan_that_cannot_be_read(tmp_path, changes, match):
    with pytest.raises(memwall_apply.ApplyError, match=match):
        memwall_apply.load(document(tmp_path, **changes))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x1f\x8bnot gzip", b"\xff\xfe", b"[" * 100000,
                                     gzip.compress(b"{}")[:-9], gzip.compress(b"{}" * 99)[:20] + b"xxxxxxxxxxxx"])
def test_a_file_that_is_no_plan(tmp_path, content):
    path = tmp_path / "step.plan"
    path.write_bytes(content)
    with pytest.raises(memwall_apply.ApplyError, match="step.plan"):
        memwall_apply.load(path)


def test_a_file_that_is_absent(tmp_path):
    with pytest.raises(memwall_apply.ApplyError, match="none.plan: cannot be read: No such file"):
        memwall_apply.load(tmp_path / "none.plan")


@pytest.mark.parametrize("content", [b"", b"{}\n", b"\x1f\x8b", b'{"format": "memwall-capture"}\n{"alloc": 3}\n',
                                     b'{"format": "memwall-capture"}\n[1]\n', b'{"format": "memwall-capture"}\n{"what": 1}\n'])
def test_a_capture_that_cannot_be_read(tmp_path, content):
    path = tmp_path / "step.mwc"
    path.write_bytes(content)
    with pytest.raises(memwall_apply.ApplyError, match="step.mwc"):
        memwall_apply.verify(memwall_apply.load(document(tmp_path)), path)


# ---- where it runs

def test_an_unknown_torch():
    refusals.require_torch("2.15.1+cu132")
    with pytest.raises(memwall_apply.ApplyError, match="torch 2.16.0 is installed, with which memwall_apply was not tested"):
        refusals.require_torch("2.16.0")


def test_another_model(tmp_path):
    plan = write_plan(tmp_path / "step.plan", Gpt(layers=4), units(["h.0"]))
    with pytest.raises(memwall_apply.ApplyError, match="a parameter .*h.3.* has none of that name"):
        memwall_apply.apply(Gpt(layers=3), plan)
    with pytest.raises(memwall_apply.ApplyError, match="this model has a parameter h.4.* that the captured one did not train"):
        memwall_apply.apply(Gpt(layers=5), plan)
    with pytest.raises(memwall_apply.ApplyError, match="has 2048 bytes; here it has 4096"):
        memwall_apply.apply(Gpt(width=32), plan)
    with pytest.raises(memwall_apply.ApplyError, match="here it has"):
        memwall_apply.apply(Gpt().to(torch.bfloat16), plan)


def test_a_second_plan(tmp_path):
    model = Gpt()
    plan = write_plan(tmp_path / "step.plan", model, units(["h.0"]))
    applied = memwall_apply.apply(model, plan)
    with pytest.raises(memwall_apply.ApplyError, match="applied to this model already"):
        memwall_apply.apply(model, plan)
    applied.remove()
    memwall_apply.apply(model, plan)


def test_a_model_without_a_plan_is_what_it_was(tmp_path):
    model = Gpt()
    before = [dict(module.__dict__) for module in model.modules()]
    realization = {**units(["h.0"]), **lazy([("h.1", "aten::gelu")]), **HOST_OPTIMIZER}
    optimizer = torch.optim.AdamW(model.parameters())
    parameters = optimizer.param_groups[0]["params"]
    memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, realization), optimizer).remove()
    assert [set(module.__dict__) for module in model.modules()] == [set(one) for one in before]
    assert all(a is b for a, b in zip(parameters, optimizer.param_groups[0]["params"]))


def test_a_copy_of_a_planned_model(tmp_path):
    """It would run the original's modules."""
    model = Gpt()
    memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, units(["h.0"])))
    with pytest.raises(memwall_apply.ApplyError, match="cannot be copied"):
        copy.deepcopy(model)
    with pytest.raises(memwall_apply.ApplyError, match="cannot be pickled"):
        pickle.dumps(model._memwall_applied)


def test_a_plan_that_does_nothing(tmp_path):
    refused(Gpt(), tmp_path, {}, "runs nothing again and moves nothing")


def test_a_wrapped_model(tmp_path):
    model = Gpt()
    plan = write_plan(tmp_path / "step.plan", model, units(["h.0"]))
    checkpointing = Gpt()
    checkpointing.h[1].gradient_checkpointing = True
    with pytest.raises(memwall_apply.ApplyError, match="Checkpointing is switched on in the module h.1 already"):
        memwall_apply.apply(checkpointing, plan)


def test_a_module_that_is_not_there(tmp_path):
    refused(Gpt(), tmp_path, units(["h.7"]), "runs the module h.7 again")


def test_units_in_each_other(tmp_path):
    refused(Gpt(), tmp_path, units(["h.1"], ["h.1.up"]), "h.1 and h.1.up share a module")


def test_an_optimizer_that_is_missing(tmp_path):
    refused(Gpt(), tmp_path, HOST_OPTIMIZER, r"expected apply\(model, plan, optimizer\)")


def test_an_optimizer_elsewhere(tmp_path):
    model = Gpt()
    refused(model, tmp_path, {"optimizer": {"place": "nvme", "implementation": "cpu_adam"}}, "Others are not implemented",
            torch.optim.AdamW(model.parameters()))


def test_a_closure(tmp_path):
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters())
    memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, HOST_OPTIMIZER), optimizer)
    with pytest.raises(memwall_apply.ApplyError, match="with a closure"):
        optimizer.step(lambda: model(*model.batch()))


# ---- what only a run tells

def test_a_unit_that_changes_its_input(tmp_path):
    refused_in_training(ResNet(), tmp_path, units(["blocks.0.relu"]), "changes what it is given in place")


class InPlaceBehind(Gpt):
    def forward(self, words, targets):
        x = self.embedding(words)
        y = self.h[0](x * 1)
        z = x * 2
        y = y + self.h[1](z)
        z.add_(1)
        return torch.nn.functional.cross_entropy(self.head(y).flatten(0, 1), targets.flatten())


def test_an_input_that_is_changed_behind_its_unit(tmp_path):
    refused_in_training(InPlaceBehind(), tmp_path, units(["h.1"]), "given is changed in place behind it")


class Cache:
    def __init__(self):
        self.layers = {}


class Caching(Gpt):
    """Its blocks keep what they made in an object that they are given."""

    def __init__(self):
        super().__init__()
        for i, block in enumerate(self.h):
            forward = block.forward

            def keeps(x, cache, i=i, forward=forward):
                cache.layers.setdefault(i, []).append(x * 2)
                return forward(x)

            block.forward = keeps

    def forward(self, words, targets):
        x, cache = self.embedding(words), Cache()
        for block in self.h:
            x = block(x, cache=cache)
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


def test_a_unit_that_fills_a_cache(tmp_path):
    refused_in_training(Caching(), tmp_path, units(["h.0"]), "an object of class Cache, and backward runs it a second time")


class OwnCheckpoint(Gpt):
    def forward(self, words, targets):
        x = self.h[0](self.embedding(words))
        x = checkpoint(self.h[1], x, use_reentrant=True)
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


def test_a_reentrant_checkpoint(tmp_path):
    refused_in_training(OwnCheckpoint(), tmp_path, units(["h.0"]), "use_reentrant=True")


class Branching(Gpt):
    def forward(self, words, targets):
        x = self.h[1](self.h[0](self.embedding(words)) * 2)
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


def test_a_group_that_is_no_chain(tmp_path):
    refused_in_training(Branching(), tmp_path, units(["h.0", "h.1"]), "used by others than the next")


class Residuals(Gpt):
    """What the first block gives is used by the second, and beside it."""

    def forward(self, words, targets):
        x = self.h[0](self.embedding(words))
        x = self.combine(x, self.h[1](x))
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


@pytest.mark.parametrize("combine", [lambda x, y: x + y, lambda x, y: y + x, torch.add, lambda x, y: torch.cat([x, y]),
                                     lambda x, y: y * x.sum(), lambda x, y: y - x[0]])
def test_a_group_whose_inside_is_used_beside_it(tmp_path, combine):
    model = Residuals()
    model.combine = combine
    refused_in_training(model, tmp_path, units(["h.0", "h.1"]), "used by others than the next|called with something else")


def test_a_group_of_which_one_is_not_called(tmp_path):
    refused_in_training(Branching(), tmp_path, units(["h.1", "h.2"]), "used by others than the next")


def test_a_unit_that_does_not_run(tmp_path):
    refused_in_training(Branching(), tmp_path, units(["h.3"]), "1 units of the plan did not run in forward")


def test_an_operator_that_does_not_run(tmp_path):
    refused_in_training(Gpt(), tmp_path, lazy([("h.0", "aten::silu")]), "no such operator ran there")


def test_an_operator_in_place(tmp_path):
    refused_in_training(ResNet(), tmp_path, lazy([("blocks.0.relu", "aten::relu_")]), "changes in place what")


class Counting(Gpt):
    def __init__(self):
        super().__init__()
        self.h[0].register_buffer("calls", torch.zeros(()))
        forward = self.h[0].forward

        def counted(x):
            self.h[0].calls += 1
            return forward(x)

        self.h[0].forward = counted


def test_a_buffer_that_would_be_updated_twice(tmp_path):
    refused_in_training(Counting(), tmp_path, units(["h.0"]), "updates its buffer calls whenever it runs")


def test_another_batch(tmp_path):
    model = Gpt()
    moves = offload([2 * size for size in saved_sizes(model)])
    refused_in_training(model, tmp_path, moves, "The storage number 0 that autograd saves has .* bytes .* the plan expects")


def test_storages_that_never_come(tmp_path):
    model = Gpt()
    sizes = saved_sizes(model)
    refused_in_training(model, tmp_path, offload([*sizes, 64, 64]), "1 never came|2 never came")


def test_a_retained_graph_with_operators_that_run_again(tmp_path):
    model = Gpt()
    memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, lazy([("h.0", "aten::gelu")])))
    loss = model(*model.batch())
    loss.backward(retain_graph=True)
    with pytest.raises(memwall_apply.ApplyError, match="retain_graph=True"):
        loss.backward()


@pytest.mark.parametrize("realization", [units(["h.0"], ["h.1"]), "moves"], ids=["units", "moves"])
def test_a_retained_graph_gives_the_same_gradients_again(tmp_path, realization):
    model = Gpt()
    if realization == "moves":
        realization = offload(saved_sizes(model))
    memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, realization))
    loss = model(*model.batch())
    loss.backward(retain_graph=True)
    once = [p.grad.clone() for p in model.parameters()]
    loss.backward()
    assert all(torch.equal(p.grad, 2 * g) for p, g in zip(model.parameters(), once))


class Changing(Gpt):
    changes = False

    def forward(self, words, targets):
        sent, stays = self.embedding(words) * 2, self.embedding(words) * 3
        out = sent * sent + stays * stays
        if self.changes:
            stays.add_(1)
        return out.sum()


def test_a_saved_tensor_that_stays_and_is_changed_in_place(tmp_path):
    """Autograd looks for that itself, but not with hooks."""
    model = Changing()
    memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, offload(saved_sizes(model))))
    model(*model.batch()).backward()
    model.changes = True
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        model(*model.batch()).backward()


def test_without_gradients_the_model_runs_as_it_is(tmp_path):
    model = Gpt()
    plain = model(*(batch := model.batch()))
    applied = memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, units(["h.0", "h.1"])))
    with torch.no_grad():
        assert torch.equal(model(*batch), plain)
    assert applied.counts["unit_runs"] == 0
