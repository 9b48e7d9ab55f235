"""Programs that a plan could make wrong without a word: either results are those without the plan, or there is a sentence."""

import copy
import gc
import random
import threading
import time

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.nn import functional as F

from programs import Gpt, ResNet, lazy, offload, same, saved_sizes, units, write_plan

import memwall_apply
from memwall_apply import refusals
from memwall_apply.hook import Hook, SavedPass
from memwall_apply.memory_plan import Move, Offload
from memwall_apply.streams import Streams
from memwall_apply.storages import SavedStorage, counter_of, counts_with

X = [torch.randn(4, 8, generator=torch.Generator().manual_seed(i)) for i in range(4)]


class Model(nn.Module):
    """Two layers around `inner`, which the plan runs again."""

    def __init__(self, inner, call=lambda inner, h: inner(h)):
        super().__init__()
        self.a, self.b, self.u, self.call = nn.Linear(8, 8), nn.Linear(8, 8), inner, call

    def forward(self, x):
        return self.b(self.call(self.u, self.a(x))).pow(2).sum()


def trained(model, steps=3):
    torch.manual_seed(5)
    random.seed(5)
    results = []
    for i in range(steps):
        loss = model(X[i])
        loss.backward()
        results += [loss.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(0.05 * (0 if p.grad is None else p.grad))
        model.zero_grad()
        results += [t.detach().clone() for t in model.state_dict().values()]
    return results


def equal(tmp_path, make, realization=units(["u"])):
    results = []
    for plan in (None, realization):
        torch.manual_seed(0)
        model = make()
        if plan is not None:
            memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, plan(model) if callable(plan) else plan))
        results.append(trained(model))
    return same(*results)


def refused(tmp_path, make, realization, match, error=memwall_apply.ApplyError):
    with pytest.raises(error, match=match):
        equal(tmp_path, make, realization)


class Inner(nn.Module):
    def __init__(self, use=lambda self, x: x):
        super().__init__()
        self.l, self.use = nn.Linear(8, 8), use
        self.register_buffer("mean", torch.zeros(8))
        self.scale, self.count, self.last = torch.ones(8), 0, None

    def forward(self, x, debug=False, context_fn=1, determinism_check=1, use_reentrant=1, preserve_rng_state=1):
        factor = 1 + debug + context_fn + determinism_check + use_reentrant + preserve_rng_state
        return self.l(self.use(self, x)).tanh() * factor


# ---- what a unit is given

def of_list(inner, h):
    given = [h]
    out = inner(given)
    given.append(out)
    return out + out.tanh()


def of_dict(inner, h):
    given = {"x": [h]}
    out = inner(given)
    given["x"][0] = out * 2
    return given["x"][0]


@pytest.mark.parametrize(("use", "call"), [(lambda self, x: sum(x), of_list), (lambda self, x: x["x"][0], of_dict)])
def test_containers_that_are_changed_behind_a_unit(tmp_path, use, call):
    assert equal(tmp_path, lambda: Model(Inner(use), call))


def test_a_container_that_a_unit_fills(tmp_path):
    """The caller sees what the first run adds, and the second run does not see it."""
    def use(self, given):
        given.append(given[0] * 2)
        return sum(given)

    def call(inner, h):
        given = [h]
        return inner(given) + given[1]

    assert equal(tmp_path, lambda: Model(Inner(use), call))


def test_a_tensor_in_a_container_that_is_changed_in_place(tmp_path):
    extra = [torch.zeros(8)]

    class Outer(Model):
        def forward(self, x):
            loss = super().forward(x)
            loss.register_hook(lambda _: (extra[0].add_(1), None)[1])  # when backward has begun
            return loss

    refused(tmp_path, lambda: Outer(Inner(lambda self, x: x[0] + x[1][0]), lambda inner, h: inner([h, extra])), units(["u"]),
            "What the unit u was given .* is changed in place behind it")


@pytest.mark.parametrize("word", ["debug", "context_fn", "determinism_check", "use_reentrant", "preserve_rng_state"])
def test_keywords_that_checkpointing_has_too(tmp_path, word):
    assert equal(tmp_path, lambda: Model(Inner(), lambda inner, h: inner(h, **{word: True})))
    assert equal(tmp_path, lambda: Model(Inner(), lambda inner, h: inner(h, **{word: 3})))


# ---- what a unit's modules hold

def assigned_anew(self, x):
    self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
    return x - self.mean


def counted(self, x):
    self.count += 1
    return x * 0.9**self.count


def logged(self, x):
    """What was there before is let go."""
    self.last = x * 2
    return self.last


def filled_once(self, x):
    if self.last is None:
        self.last = torch.ones(8) * 2
    return x * self.last


@pytest.mark.parametrize("use", [assigned_anew, counted, logged, filled_once])
def test_attributes_that_a_unit_assigns_anew(tmp_path, use):
    assert equal(tmp_path, lambda: Model(Inner(use)))


@pytest.mark.parametrize("use", [assigned_anew, counted])
def test_attributes_of_a_unit_that_is_called_twice(tmp_path, use):
    assert equal(tmp_path, lambda: Model(Inner(use), lambda inner, h: inner(inner(h))))


def test_a_forward_that_ended_with_an_error(tmp_path):
    """What its units were given is nobody's concern any more."""
    class Outer(Model):
        fails = True

        def forward(self, x):
            h = self.u(x)
            if self.fails:
                raise ZeroDivisionError
            return h.sum()

    model, x = Outer(Inner()), X[0].clone()
    memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, units(["u"])))
    with pytest.raises(ZeroDivisionError):
        model(x)
    x.add_(1)
    model.fails = False
    model(x).backward()


def test_a_mode_that_the_program_changes_behind_forward(tmp_path):
    class Outer(Model):
        def forward(self, x):
            self.train()
            loss = super().forward(x)
            self.eval()
            return loss
    assert equal(tmp_path, lambda: Outer(nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Tanh())))


def rescaled(self, x):
    self.scale = self.scale * 1.1
    return x * self.scale


def updated(self, x):
    self.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))
    return x - self.mean


def updated_through_data(self, x):
    self.mean.data.mul_(0.9).add_(0.1 * x.detach().mean(0))
    return x - self.mean


def rescaled_in_place(self, x):
    self.scale.mul_(1.1)
    return x * self.scale.clone()


@pytest.mark.parametrize(("use", "match"), [
    (rescaled, "The unit u reads its attribute scale, which it has assigned anew since"),
    (updated, "The unit u updates its buffer mean whenever it runs"),
    (updated_through_data, "The unit u updates its buffer mean whenever it runs"),
    (rescaled_in_place, "The unit u updates its buffer scale whenever it runs")])
def test_attributes_that_cannot_be_put_back(tmp_path, use, match):
    refused(tmp_path, lambda: Model(Inner(use)), units(["u"]), match)


# ---- random numbers

def numpys(self, x):
    import numpy
    return x * numpy.random.rand()


class Generating(Inner):
    def __init__(self):
        super().__init__(lambda self, x: x * torch.rand(x.shape, generator=self.generator))
        self.generator = torch.Generator().manual_seed(1)


@pytest.mark.parametrize("make", [lambda: Inner(lambda self, x: x * random.random()), lambda: Inner(numpys), Generating])
def test_other_random_numbers_are_those_of_the_first_run(tmp_path, make):
    numpy = pytest.importorskip("numpy")
    results = []
    for plan in (None, units(["u"])):
        numpy.random.seed(3)
        torch.manual_seed(0)
        model = Model(make())
        if plan:
            memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, plan))
        results.append(trained(model))
    assert same(*results)


# ---- operators that run again

class Written(Model):
    """Its forward is `use`."""

    def __init__(self, use):
        super().__init__(nn.Identity())
        self.use = use
        self.register_buffer("mean", torch.ones(8))

    def forward(self, x):
        return self.use(self, x)


def result_changed(self, x):
    return self.b(F.relu_(self.a(x))).sum()


def input_changed(self, x):
    h = self.a(x)
    y = h.exp()
    h.add_(1)
    return (self.b(y) + h).sum()


def input_changed_through_an_alias(self, x):
    h = self.a(x)
    y = h.exp()
    h.detach().add_(1)
    return (self.b(y) + 1).sum()


def buffer_changed(self, x):
    h = (self.a(x) + self.mean).tanh()
    self.mean.mul_(1.5)
    return self.b(h).sum()


def changed_between(self, x):
    h = self.a(x)
    h.mul_(2)
    return self.b(h.exp().exp()).sum()


def two_draws(self, x):
    generator = torch.Generator().manual_seed(3)
    scale = torch.rand(4, 8, generator=generator)
    return (self.a(x) * scale).sum()


STARTS = "what it starts from was changed in place after it ran first"
MADE = "was changed in place after an operator that the plan runs again made it"


@pytest.mark.parametrize(("use", "ops", "match"), [
    (result_changed, [("a", "aten::addmm")], MADE),
    (input_changed, [("", "aten::exp")], STARTS),
    (input_changed_through_an_alias, [("", "aten::exp")], STARTS),
    (buffer_changed, [("", "aten::add"), ("", "aten::tanh")], STARTS),
    (changed_between, [("a", "aten::addmm"), ("", "aten::exp")], f"aten::exp, which the plan runs again, reads .* {MADE}"),
    (two_draws, [("", "aten::rand")], "aten::rand again, which draws from a generator that it is given")])
def test_operators_that_run_again_from_something_else(tmp_path, use, ops, match):
    refused(tmp_path, lambda: Written(use), lazy(ops), match)


def test_operators_that_change_what_the_same_group_made(tmp_path):
    assert equal(tmp_path, lambda: Written(result_changed), lazy([("a", "aten::addmm"), ("", "aten::relu_")]))


def once(self, x):
    self.count = getattr(self, "count", 0) + 1
    h = self.a(x).sigmoid()
    return self.b(h if self.count == 3 else h.exp().exp()).sum()


@pytest.mark.parametrize(("calls", "match"), [
    (None, "no such operator ran there in forward.* in every forward"),
    ([0, 2], "again .call 2, counted from 0., and it ran 2 times there in forward")])
def test_an_operator_that_does_not_run_in_every_forward(tmp_path, calls, match):
    realization = lazy([("", "aten::exp")])
    if calls:
        realization["lazy_ops"][0]["ops"][0]["calls"] = calls
    refused(tmp_path, lambda: Written(once), realization, match)


def test_batch_norm_as_an_operator_that_runs_again(tmp_path):
    model = ResNet()
    memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, lazy([("blocks.0.norm1", "aten::native_batch_norm")])))
    with pytest.raises(memwall_apply.ApplyError, match="native_batch_norm again, which updates running_mean whenever it runs"):
        model(*model.batch())


def test_an_input_that_the_program_uses_again(tmp_path):
    model = Written(lambda self, x: self.b(x.exp() * self.a(x)).sum())
    memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, lazy([("", "aten::exp")])))
    x = X[0].clone()
    loss = model(x)
    with pytest.raises((RuntimeError, memwall_apply.ApplyError), match=f"modified by an inplace operation|{STARTS}"):
        x.fill_(3)
        loss.backward()


# ---- what travels

def moves(**settings):
    return lambda model: offload(sizes_of(copy.deepcopy(model)), **settings)


def sizes_of(model):
    hook = Hook(model, None, None, "cpu")
    saved = hook.open([X[0]])
    with torch.autograd.graph.saved_tensors_hooks(saved.pack, saved.unpack):
        model(X[0])
    return [storage.bytes for storage in saved.numbered]


def pieces(self, x):
    p, q = self.a(x).unsafe_chunk(2, 1)
    return (p.sigmoid_() * q.tanh_()).sum()


def pieces_that_stay_as_they_are(self, x):
    p, q = self.a(x).unsafe_chunk(2, 1)
    return (p.sigmoid() * p * q.tanh() * q).sum()


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.LSTMCell(8, 8)

    def forward(self, x):
        h = c = torch.zeros(4, 8)
        for _ in range(3):
            h, c = self.c(x, (h, c))
        return h.sum()


@pytest.mark.parametrize("make", [lambda: Written(pieces), Cell])
def test_pieces_whose_changes_are_counted_apart(tmp_path, make):
    refused(tmp_path, make, moves(keep=0), "changed in place after the plan had sent it to the host")


def test_pieces_that_nobody_changes(tmp_path):
    assert equal(tmp_path, lambda: Written(pieces_that_stay_as_they_are), moves(keep=0))


def squares(self, x):
    h = self.a(x) * 2
    return self.b(h * h).pow(2).sum()


@pytest.mark.parametrize("what", ["parameter", "input"])
@pytest.mark.parametrize("realization", [moves(keep=1), lazy([("", "aten::mul")])], ids=["moves", "operators"])
def test_what_stays_and_is_changed_before_backward(tmp_path, realization, what):
    """As without a plan."""
    for plan in (None, realization):
        model, x = Written(squares), X[0].clone()
        if plan is not None:
            memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, plan(model) if callable(plan) else plan))
        loss = model(x)
        with torch.no_grad():
            (model.b.weight if what == "parameter" else x).mul_(3)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_what_travels_and_is_changed_before_backward(tmp_path):
    model, kept = Written(lambda self, x: kept.append(self.a(x).sigmoid()) or self.b(kept[-1]).pow(2).sum()), []
    memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, moves(keep=1)(Written(squares))))
    loss = model(X[0])
    with torch.no_grad():
        kept[0].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def rebound(self, x):
    self.mean = self.mean * 0.5 + x.sum(0)
    h = self.a(x).sigmoid()
    return self.b(h * h).tanh().sum()


def test_a_buffer_that_is_assigned_anew(tmp_path):
    """What is allocated where the buffer was is no buffer."""
    for _ in range(5):
        assert equal(tmp_path, lambda: Written(rebound), moves(keep=0))


def odd(self, x):
    h = self.a(x)
    row = torch.empty(4 * 8 * 4 + 3, dtype=torch.uint8)
    weights = row[:128].view(torch.float32).view(4, 8)
    weights.copy_(x)
    return (h * weights).sum()


def test_a_storage_that_is_no_multiple_of_its_elements(tmp_path):
    assert equal(tmp_path, lambda: Written(odd), moves(keep=0))


def inferred(self, x):
    with torch.inference_mode():
        fixed = x * 2
    return self.b(self.u(fixed, self.a(x)).tanh()).sum()


@pytest.mark.parametrize("realization", [units(["u"]), lazy([("u", "aten::add")]), moves(keep=0)], ids=["unit", "operators", "moves"])
def test_inference_tensors(tmp_path, realization):
    class Sum(nn.Module):
        def forward(self, fixed, h):
            return (fixed + h).sin()

    def make():
        model = Written(inferred)
        model.u = Sum()
        return model
    assert equal(tmp_path, make, realization)


def test_which_tensors_count_the_same_changes():
    one = torch.zeros(4, 4) * 1
    counter, (piece, other) = counter_of(one), one.unsafe_chunk(2, 1)
    assert counts_with(counter, one) and counts_with(counter, one[1:].view(-1)) and counts_with(counter, one.detach())
    assert not counts_with(counter, piece) and not counts_with(counter, one.data) and not counts_with(counter_of(piece), other)
    one.add_(1)
    assert counter._version == one._version == 1 and counter.numel() == 0 and piece._version == 0


# ---- graphs that are not used up

def completed(model):
    model(*model.batch()).backward()


def retained(model):
    model(*model.batch()).backward(retain_graph=True)


def for_a_graph(model):
    model(*model.batch()).backward(create_graph=True)


def without_backward(model):
    model(*model.batch())


def of_one_weight(model):
    torch.autograd.grad(model(*model.batch()), [model.head.weight])


def kept_objects():
    return sum(type(one) in (SavedPass, SavedStorage) for one in gc.get_objects())


def interrupted(model):
    def fail(_gradient):
        raise ZeroDivisionError
    handle = model.h[0].up.weight.register_hook(fail)
    loss = model(*model.batch())
    try:
        loss.backward()
    except ZeroDivisionError:
        pass
    handle.remove()


@pytest.mark.parametrize("backward", [completed, retained, for_a_graph, without_backward, of_one_weight, interrupted])
@pytest.mark.parametrize("realization", ["moves", lazy([("h.0", "aten::gelu")], [("h.1", "aten::gelu")])], ids=["moves", "operators"])
def test_memory_of_a_graph_that_is_dropped(tmp_path, realization, backward):
    """Without waiting for the collector of cycles."""
    model = Gpt(layers=2)
    realization = offload(saved_sizes(copy.deepcopy(model))) if realization == "moves" else realization
    applied = memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, realization))
    gc.collect()
    gc.disable()
    try:
        sizes, before = [], kept_objects()
        for _ in range(4):
            backward(model)
            model.zero_grad()
            sizes.append(applied.counts.get("host_bytes"))
            assert kept_objects() - before <= (40 if backward is interrupted else 0)  # autograd keeps the last that failed
        assert len(set(sizes[1:])) == 1
    finally:
        gc.enable()


# ---- devices, streams, threads

def test_a_model_on_several_devices():
    class Split(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8, device="meta"), nn.Linear(8, 8, device="meta")
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = Split()
        model.a.weight = nn.Parameter(torch.empty(8, 8, device="cuda:0"))
        assert refusals.device_of(model) == torch.device("cuda:0")
        model.b.weight = nn.Parameter(torch.empty(8, 8, device="cuda:1"))
        with pytest.raises(memwall_apply.ApplyError, match="on 2 devices .cuda:0, cuda:1.; expected one"):
            refusals.device_of(model)


class Recorded(Streams):
    """Says which stream waits for which copy. There are two for what is computed; the current one can be chosen."""

    def __init__(self):
        super().__init__("cpu", True, False)
        self.now, self.waits, self.used = "first", [], []

    def copy(self, side, target, source, after=None):
        target.copy_(source)
        return ("to the host" if side == "out" else "back", target.data_ptr() if side == "out" else source.data_ptr())

    def current(self):
        return self.now

    def wait(self, event, stream=None):
        if event is not None:
            self.waits.append((stream or self.now, event))

    def use(self, tensor, home):
        if self.now != home:
            self.used.append(self.now)


def test_every_stream_that_reads_waits_and_memory_goes_back_to_its_own(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # asked where a storage retires
    plan = Offload(False, True, 1, [Move(0, 128, ("", "?", 0), -1, -1)], [0])
    hook = Hook(nn.Identity(), plan, None, "cpu")
    hook.streams = streams = Recorded()
    streams.out, streams.back = "out", "back"
    saved, tensor = hook.open([]), torch.ones(4, 8) * 2
    packed = [saved.pack(tensor), saved.pack(tensor.t())]
    del tensor
    saved.end_of_forward()
    (left,) = [event for _, event in streams.waits]
    assert left[0] == "to the host"
    streams.waits.clear()
    one = saved.unpack(packed[0])
    streams.now = "second"
    other = saved.unpack(packed[1])
    back = ("back", left[1])
    assert torch.equal(one, other.t()) and streams.used == ["second"]
    # Both wait before they read; when memory is given up, the stream from whose pool it is does.
    assert streams.waits == [("first", back), ("second", back), ("first", back)]


def test_several_threads_that_ask_at_once():
    """A storage comes back once."""
    plan = Offload(False, False, 1, [Move(0, 128, ("", "?", 0), -1, -1)], [0])
    hook = Hook(nn.Identity(), plan, None, "cpu")
    saved, tensor = hook.open([]), torch.ones(4, 8)
    packed = [saved.pack(tensor) for _ in range(8)]
    saved.end_of_forward()
    fetch, inside = SavedPass._fetch, []

    def slow(storage):
        inside.append(1)
        time.sleep(0.05)
        fetch(saved, storage)

    saved._fetch = slow
    threads = [threading.Thread(target=saved.unpack, args=(one,)) for one in packed]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(inside) == 1
