"""The optimizer on the host: what training loops do with gradients and parameters between its steps. Weights are equal bit for
bit to those of the same loop without a plan, or a sentence says what is not implemented."""

import copy
import gc
import weakref

import pytest
import torch
from torch import nn

from planned import needs_memwall, plan_for, planned_capture
from programs import HOST_OPTIMIZER, Gpt, same, write_plan

import memwall_apply
from memwall_apply.watched import grad_of

ADAMW = lambda parameters: torch.optim.AdamW(parameters, lr=0.01, fused=True)  # noqa: E731
SGD = lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, fused=True)  # noqa: E731
INPUTS = torch.randn(4, 4, 8, generator=torch.Generator().manual_seed(7))


@pytest.fixture(autouse=True)
def one_thread():
    """Threads would wait longer for each other than these small operators take."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x, skips=False):
        h = self.a(x).tanh()
        if not skips:
            h = self.b(h).tanh()
        return self.d(self.c(h).tanh()).pow(2).mean()


def applied(tmp_path, model, optimizer, buffers=0):
    plan = write_plan(tmp_path / "step.plan", model, {"optimizer": {**HOST_OPTIMIZER["optimizer"], "buffers": buffers}})
    return memwall_apply.apply(model, plan, optimizer)


def backward(model, step, **others):
    model(INPUTS[step % 4], **others).backward()


def update(optimizer):
    optimizer.step()
    optimizer.zero_grad()


# ---- loops: each is one step, and returns what it has logged

def common(model, optimizer, step):
    backward(model, step)
    update(optimizer)


def never_zeroed(model, optimizer, step):
    backward(model, step)
    optimizer.step()


def zeroed_every_second_time(model, optimizer, step):
    backward(model, step)
    optimizer.step()
    if step % 2:
        optimizer.zero_grad()


def zeroed_by_the_model(model, optimizer, step):
    backward(model, step)
    optimizer.step()
    model.zero_grad()


def zeroed_by_hand(model, optimizer, step):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = None
    backward(model, step)
    optimizer.step()


def set_to_zero(model, optimizer, step):
    backward(model, step)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)


def set_to_zero_with_idle_parameters(model, optimizer, step):
    backward(model, step, skips=step % 2 == 1)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)


def idle_parameters(model, optimizer, step):
    backward(model, step, skips=step % 2 == 1)
    update(optimizer)


def a_skipped_step(model, optimizer, step):
    backward(model, step)
    if step != 3:
        optimizer.step()
    optimizer.zero_grad()


def a_skipped_step_that_sums(model, optimizer, step):
    backward(model, step)
    if step != 3:
        update(optimizer)


def passes_that_change(model, optimizer, step):
    for i in range((4, 4, 2, 5, 1, 4)[step]):
        backward(model, i)
    update(optimizer)


def a_failure_between(model, optimizer, step):
    backward(model, step)
    if step != 2:
        optimizer.step()
    optimizer.zero_grad()


def a_failure_in_backward(model, optimizer, step):
    def fail(_gradient):
        raise ZeroDivisionError
    handle = model.b.weight.register_hook(fail) if step in (2, 4) else None
    try:
        backward(model, step)
        optimizer.step()
    except ZeroDivisionError:
        handle.remove()
    if step != 4:  # then what has come of it is kept
        optimizer.zero_grad()


def scaled_by_hand(model, optimizer, step):
    backward(model, step)
    if step >= 2:
        for p in model.parameters():
            if p.grad is not None:
                p.grad.mul_(0.1)
    update(optimizer)


def clamped_through_data(model, optimizer, step):
    backward(model, step)
    for p in model.parameters():
        if step != 1:
            p.grad.data.clamp_(-0.01, 0.01)
    update(optimizer)


def clipped_by_value(model, optimizer, step):
    backward(model, step)
    if step >= 2:
        nn.utils.clip_grad_value_(model.parameters(), 1e-3)
    update(optimizer)


def clipped_by_norm(model, optimizer, step):
    backward(model, step)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1e-3) if step >= 2 else torch.zeros(())
    update(optimizer)
    return [norm]


def norms_logged(model, optimizer, step):
    backward(model, step)
    norms = [p.grad.norm() for p in model.parameters()] if step % 2 else []
    update(optimizer)
    return norms


def norms_logged_behind_the_step(model, optimizer, step):
    backward(model, step)
    optimizer.step()
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    optimizer.zero_grad()
    return [norm]


def total_norm_by_the_public_name(model, optimizer, step):
    backward(model, step)
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    update(optimizer)
    return [norm]


def changed_by_a_hook_of_backward(model, optimizer, step):
    def clamp(p):
        p.grad.clamp_(-0.01, 0.01)

    if step == 0:
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(clamp)
    common(model, optimizer, step)


def gradients_assigned(model, optimizer, step):
    parameters = list(model.parameters())
    for p, gradient in zip(parameters, torch.autograd.grad(model(INPUTS[step % 4]), parameters)):
        p.grad = gradient
    update(optimizer)


def one_gradient_removed(model, optimizer, step):
    backward(model, step)
    if step >= 2:
        model.a.weight.grad = None
    update(optimizer)


def gradients_in_one_memory(model, optimizer, step):
    parameters = list(model.parameters())
    if step == 0:
        model.flat = torch.zeros(sum(p.numel() for p in parameters))
        for p, part in zip(parameters, model.flat.split([p.numel() for p in parameters])):
            p.grad = part.view_as(p)
    backward(model, step)
    norm = model.flat.norm()
    optimizer.step()
    model.flat.zero_()
    return [norm]


def gradients_kept(model, optimizer, step):
    """What is added in the second pass goes to the gradient that the program has."""
    backward(model, step)
    kept = [p.grad for p in model.parameters()]
    backward(model, step + 1)
    logged = [gradient.clone() for gradient in kept]
    optimizer.step()
    kept[0].zero_()
    backward(model, step)
    update(optimizer)
    return logged


def gradients_of_gradients(model, optimizer, step):
    model(INPUTS[step % 4]).backward(create_graph=True)
    sum(p.grad.pow(2).sum() for p in model.parameters()).backward()
    update(optimizer)


def parameters_clamped_through_data(model, optimizer, step):
    common(model, optimizer, step)
    for p in model.parameters():
        p.data.clamp_(-0.1, 0.1)


def parameters_replaced(model, optimizer, step):
    common(model, optimizer, step)
    if step == 2:
        model.a.weight.data = torch.full((8, 8), 0.25)


def states_loaded(model, optimizer, step):
    common(model, optimizer, step)
    if step == 2:
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def frozen_now_and_then(model, optimizer, step):
    model.a.requires_grad_(step % 2 == 0)
    common(model, optimizer, step)


LOOPS = [common, never_zeroed, zeroed_every_second_time, zeroed_by_the_model, zeroed_by_hand, set_to_zero,
         set_to_zero_with_idle_parameters, idle_parameters, a_skipped_step, a_skipped_step_that_sums, passes_that_change,
         a_failure_between, a_failure_in_backward, scaled_by_hand, clamped_through_data, clipped_by_value, clipped_by_norm, norms_logged,
         norms_logged_behind_the_step, total_norm_by_the_public_name, changed_by_a_hook_of_backward, gradients_assigned,
         one_gradient_removed, gradients_in_one_memory, gradients_kept, gradients_of_gradients, parameters_clamped_through_data,
         parameters_replaced, states_loaded, frozen_now_and_then]


def results(model, optimizer, loop):
    found = []
    for step in range(6):
        found += loop(model, optimizer, step) or []
        found += [p.detach().clone() for p in model.parameters()]
    return found


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
@pytest.mark.parametrize("kind", [ADAMW, SGD], ids=["adamw", "sgd"])
@pytest.mark.parametrize("buffers", [0, 5])
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_loops_are_equal(tmp_path, loop, buffers, kind):
    torch.manual_seed(0)
    plain = Net()
    planned = copy.deepcopy(plain)
    expected = results(plain, kind(plain.parameters()), loop)
    optimizer = kind(planned.parameters())
    counts = applied(tmp_path, planned, optimizer, buffers)
    assert same(expected, results(planned, optimizer, loop))
    assert counts.counts["host_steps"] >= 4


# ---- memory

@pytest.mark.parametrize("buffers", [0, 3])
def test_gradients_leave_the_device_during_backward(tmp_path, buffers):
    model = Net()
    optimizer = ADAMW(model.parameters())
    counts = applied(tmp_path, model, optimizer, buffers)

    def on_device():
        return sum(grad_of(p) is not None for p in model.parameters())

    for step in range(3):
        backward(model, step)
        assert on_device() == (buffers if step else 8)
        optimizer.step()
        assert on_device() == 0
        optimizer.zero_grad()
    assert counts.counts["gradients_back"] == 0
    sizes = sum(p.numel() * p.element_size() for p in model.parameters())
    assert counts.counts["gradient_bytes"] == 3 * sizes


def test_gradients_that_a_program_reads_in_the_first_step_stay(tmp_path):
    model = Net()
    optimizer = ADAMW(model.parameters())
    counts = applied(tmp_path, model, optimizer)
    for step in range(3):
        backward(model, step)
        assert all(grad_of(p) is not None for p in model.parameters())
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update(optimizer)
    assert counts.counts["gradients_back"] == 0


@needs_memwall
def test_memory_is_what_was_planned():
    policies = "checkpoint:mode=full offload:what=optimizer,to=host"
    found = memwall_apply.verify(plan_for("gpt", policies), planned_capture("gpt", policies))
    assert abs(found.peak_bytes / found.planned_peak_bytes - 1) < 0.01


# ---- refused

def refuses(tmp_path, match, loop, model=None, steps=3):
    model = model or Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    applied(tmp_path, model, optimizer)
    with pytest.raises(memwall_apply.ApplyError, match=match):
        for step in range(steps):
            loop(model, optimizer, step)
    return model, optimizer


def test_a_scaler(tmp_path):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def loop(model, optimizer, step):
        scaler.scale(model(INPUTS[step])).backward()
        scaler.step(optimizer)
        scaler.update()

    refuses(tmp_path, r"asked for through optimizer.param_groups \(GradScaler does that\)", loop)


def test_a_scaler_that_is_switched_off_scales_nothing(tmp_path):
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    model = Net()
    optimizer = SGD(model.parameters())
    counts = applied(tmp_path, model, optimizer)
    scaler.scale(model(INPUTS[0])).backward()
    scaler.step(optimizer)
    assert counts.counts["host_steps"] == 1


def test_clipping_of_the_optimizers_parameters(tmp_path):
    def loop(model, optimizer, step):
        backward(model, step)
        nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)
        update(optimizer)

    refuses(tmp_path, "asked for through optimizer.param_groups", loop)


def test_gradients_given_to_the_optimizers_parameters(tmp_path):
    def loop(model, optimizer, _step):
        p = optimizer.param_groups[0]["params"][0]
        p.grad = torch.zeros_like(p)

    refuses(tmp_path, "was given a gradient through optimizer.param_groups", loop)


@pytest.mark.parametrize("through_data", [False, True])
def test_a_change_of_the_optimizers_parameters(tmp_path, through_data):
    def loop(model, optimizer, step):
        common(model, optimizer, step)
        with torch.no_grad():
            for p in optimizer.param_groups[0]["params"]:
                (p.data if through_data else p).clamp_(-0.1, 0.1)

    refuses(tmp_path, "changed .*through optimizer.param_groups", loop)


def test_a_sparse_gradient(tmp_path):
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(10, 8, sparse=True)

        def forward(self, x):
            return self.words(torch.arange(4)).mul(x).sum()

    refuses(tmp_path, "has a gradient of layout torch.sparse_coo .*expected a dense one", common, Words())


def test_the_step_behind_a_refusal_is_right(tmp_path):
    torch.manual_seed(0)
    plain = Net()
    planned = copy.deepcopy(plain)

    def loop(model, optimizer, step):
        common(model, optimizer, step)
        if step == 1:
            backward(model, step)
            optimizer.step(lambda: None)

    _, optimizer = refuses(tmp_path, "with a closure", loop, planned)
    optimizer.zero_grad()
    common(planned, optimizer, 2)
    plain_optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, fused=True)
    for step in range(3):
        common(plain, plain_optimizer, step)
    assert same(list(plain.parameters()), list(planned.parameters()))


# ---- taken out

@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_optimizers_are_taken_out_in_any_order(tmp_path, order):
    clip = nn.utils.clip_grad._get_total_norm
    torch.manual_seed(0)
    plain = [Net(), Net()]
    planned = copy.deepcopy(plain)
    trained = []
    for models, is_planned in ((plain, False), (planned, True)):
        optimizers = [ADAMW(model.parameters()) for model in models]
        plans = [applied(tmp_path, *one) for one in zip(models, optimizers)] if is_planned else []
        for step in range(3):
            for model, optimizer in zip(models, optimizers):
                common(model, optimizer, step)
        for i, model in enumerate(models):
            backward(model, i)  # gradients are there, some on the host alone
        for i in order if is_planned else ():
            plans[i].remove()
        for model, optimizer in zip(models, optimizers):
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            update(optimizer)
            common(model, optimizer, 0)
            trained += [norm, *model.parameters()]
    assert same(trained[:len(trained) // 2], trained[len(trained) // 2:])
    assert nn.utils.clip_grad._get_total_norm is clip


def test_what_is_taken_out_leaves_nothing(tmp_path):
    model = Gpt(layers=1)
    optimizer = torch.optim.AdamW([{"params": list(model.h.parameters()), "foreach": True},
                                   {"params": list(model.norm.parameters())}])
    before = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    kinds = [type(p) for p in model.parameters()]
    plan = applied(tmp_path, model, optimizer)
    assert all(group["fused"] for group in optimizer.param_groups)
    model(*model.batch()).backward()
    update(optimizer)
    plan.remove()
    assert before == [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    assert kinds == [type(p) for p in model.parameters()]
    assert "zero_grad" not in vars(optimizer)
    assert set(optimizer.state) <= set(model.parameters())
    kept = weakref.ref(model)
    del model, optimizer, plan
    gc.collect()
    assert kept() is None


def test_a_model_with_its_optimizer_on_the_host_is_given_back(tmp_path):
    model = Net()
    optimizer = ADAMW(model.parameters())
    applied(tmp_path, model, optimizer)
    for step in range(2):
        common(model, optimizer, step)
    kept = weakref.ref(model)
    del model, optimizer
    gc.collect()
    assert kept() is None
