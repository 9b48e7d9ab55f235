"""Faults planted into the applier: each is noticed by `verify`, or by results that are not those of an unplanned run."""

import copy
import dataclasses
import re

import pytest
import torch

from planned import needs_memwall, plan_for, planned_capture
from programs import HOST_OPTIMIZER, Gpt, ResNet, lazy, offload, same, saved_sizes, train, units, write_plan

import memwall_apply
from memwall_apply.__main__ import main
from memwall_apply import hook, optimizer, recipes, storages, streams, units as units_module
from memwall_apply.watched import grad_of

OFFLOAD = "offload:what=activations,to=host,min_bytes=65536,prefetch=2"


def noticed(name, policies, change=lambda applied: None):
    """What verify says of a step with the fault."""
    path = planned_capture(name, policies, change)
    with pytest.raises(memwall_apply.VerifyError) as error:
        memwall_apply.verify(plan_for(name, policies), path)
    return str(error.value)


@needs_memwall
@pytest.mark.parametrize(("name", "policies"), [
    ("gpt", "checkpoint:mode=full"), ("gpt", "checkpoint:mode=full,early_stop=0"), ("gpt", "selective:save=mm+sdpa"),
    ("gpt", "checkpoint:ops=gelu"), ("gpt", "checkpoint:every=2"), ("gpt", OFFLOAD), ("resnet", "checkpoint:modules=blocks.*"),
    ("resnet", OFFLOAD)])
def test_without_a_fault_the_step_is_as_planned(name, policies):
    memwall_apply.verify(plan_for(name, policies), planned_capture(name, policies))


@needs_memwall
def test_verify_as_a_program(capsys):
    plan, path = plan_for("gpt", "checkpoint:mode=full"), planned_capture("gpt", "checkpoint:mode=full")
    assert main(["verify", plan.path, path]) == 0
    assert capsys.readouterr().out.startswith("As planned: ")
    assert main(["verify", plan_for("gpt", "checkpoint:ops=gelu").path, path]) == 1
    assert "is not the planned one" in capsys.readouterr().out
    assert main(["verify", "none.plan", path]) == 2
    assert "none.plan: cannot be read" in capsys.readouterr().err


# ---- what runs again

@needs_memwall
def test_a_unit_that_is_skipped():
    def skip(applied):
        applied.units[1].remove()
        applied.units[1].runs = 1
    assert "The unit h.1 should run" in noticed("gpt", "checkpoint:mode=full", skip)


@needs_memwall
def test_a_unit_that_runs_to_its_end():
    def all_of_it(applied):
        applied.units[2].group = dataclasses.replace(applied.units[2].group, early_stop=False)
    assert "The unit h.1 should run" in noticed("gpt", "checkpoint:mode=full", all_of_it)  # the op too many begins the next


@needs_memwall
def test_selective_checkpointing_that_keeps_nothing(monkeypatch):
    monkeypatch.setattr(units_module.Unit, "_policy",
                        lambda *_, **__: units_module.CheckpointPolicy.PREFER_RECOMPUTE)
    assert "operators again; number" in noticed("gpt", "selective:save=mm+sdpa")


@needs_memwall
def test_a_counter_of_batch_norm_that_is_advanced_twice(monkeypatch):
    monkeypatch.setattr(units_module._SecondRun, "_silence", lambda self, norms: None)
    said = noticed("resnet", "checkpoint:modules=blocks.*")
    assert "num_batches_tracked a second time" in said or "aten::add_" in said


def test_averages_of_batch_norm_that_are_updated_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(units_module._SecondRun, "_silence", lambda self, norms: None)
    assert not equal(tmp_path, ResNet, units(["blocks.0"], ["blocks.1"]))


@needs_memwall
def test_operators_that_are_not_given_up(monkeypatch):
    monkeypatch.setattr(recipes._Watch, "_write_down", lambda *_: None)
    assert "should run 1 operators again" in noticed("gpt", "checkpoint:ops=gelu")


def equal(tmp_path, kind, realization, dropout=0.3, **settings):
    torch.manual_seed(0)
    plain = kind(dropout=dropout)
    planned = copy.deepcopy(plain)

    def prepare(model, used):
        memwall_apply.apply(model, write_plan(tmp_path / "step.plan", model, realization), used)
        return model

    return same(train(plain, steps=2, **settings), train(planned, steps=2, prepare=prepare, **settings))


def moves():
    return offload(saved_sizes(Gpt(dropout=0.3)), 2, 1)


BLOCKS = units(["h.0"], ["h.1"], ["h.2"], ["h.3"])
GELU = lazy(*[[(f"h.{i}", "aten::gelu")] for i in range(4)])
MLP = lazy(*[[(f"h.{i}.up", "aten::addmm"), (f"h.{i}", "aten::gelu")] for i in range(4)])


def test_without_a_fault_results_are_equal(tmp_path):
    assert equal(tmp_path, Gpt, BLOCKS) and equal(tmp_path, Gpt, GELU) and equal(tmp_path, Gpt, MLP)
    assert equal(tmp_path, ResNet, units(["blocks.0"], ["blocks.1"]))
    assert equal(tmp_path, Gpt, moves()) and equal(tmp_path, Gpt, HOST_OPTIMIZER, accumulation=2)


def test_random_numbers_that_are_drawn_anew(tmp_path, monkeypatch):
    realization = copy.deepcopy(BLOCKS)
    realization["recompute"][0]["preserve_rng"] = False
    assert not equal(tmp_path, Gpt, realization)


def test_operators_that_run_again_in_another_order(tmp_path, monkeypatch):
    again = recipes.Run.again

    def backwards(self, saved_pass):
        self.steps = [self.steps[1], self.steps[0]]
        return again(self, saved_pass)

    monkeypatch.setattr(recipes.Run, "again", backwards)
    with pytest.raises(memwall_apply.ApplyError, match="one of them reads what a later one makes"):
        equal(tmp_path, Gpt, MLP)


def test_a_unit_of_modules_in_another_order(tmp_path):
    with pytest.raises(memwall_apply.ApplyError, match="modules in a row"):
        equal(tmp_path, Gpt, units(["h.1", "h.0"]))


# ---- what travels

@needs_memwall
def test_a_copy_out_that_does_not_wait_for_what_makes_its_content(monkeypatch):
    monkeypatch.setattr(streams.Streams, "copy", copy_without("ready"))
    assert "does not wait for" in noticed("gpt", OFFLOAD)


@needs_memwall
def test_a_wait_inside_of_the_copies_stream(monkeypatch):
    monkeypatch.setattr(streams.Streams, "copy", copy_without("ready", waits_for_itself=True))
    assert "does not wait for" in noticed("gpt", OFFLOAD)


@needs_memwall
def test_memory_that_is_given_back_before_its_copy_has_ended(monkeypatch):
    monkeypatch.setattr(hook.SavedPass, "_give_back", give_back_at_once)
    assert "is given back while the copy of" in noticed("gpt", OFFLOAD)


@needs_memwall
def test_a_use_that_does_not_wait_for_the_copy_back(monkeypatch):
    fetch = hook.SavedPass._fetch

    def forget(self, storage):
        fetch(self, storage)
        storage.arrived = None

    monkeypatch.setattr(hook.SavedPass, "_fetch", forget)
    assert "from host_pinned to hbm" in noticed("gpt", OFFLOAD)


@needs_memwall
def test_host_memory_that_is_used_while_it_is_read(monkeypatch):
    monkeypatch.setattr(streams.HostPool, "take", lambda self, size: (one_buffer(self), None))
    said = noticed("gpt", OFFLOAD)
    assert "is copied over number" in said


@needs_memwall
def test_the_wrong_storage(monkeypatch):
    """One of the same size as the one that the plan names."""
    count = hook.SavedPass._count

    def shifted(self, storage, tensor):
        if not hasattr(self, "skipped") and len(self.numbered) in self.hook.moves and storage.bytes == self.skips:
            self.skipped = True
            return
        count(self, storage, tensor)

    monkeypatch.setattr(hook.SavedPass, "_count", shifted)
    monkeypatch.setattr(hook.SavedPass, "skips", 8 * 64 * 256 * 4, raising=False)  # what blocks hand to each other
    with pytest.raises(memwall_apply.ApplyError, match="The storage number .* the plan expects") as error:
        noticed("gpt", OFFLOAD)
    assert not isinstance(error.value, memwall_apply.VerifyError)


@needs_memwall
def test_another_storage_of_the_same_size(monkeypatch):
    send = hook.SavedPass._send

    def other(self, storage, move, tensor):
        send(self, storage, move, torch.empty_like(storage.whole(tensor)).as_strided(*storage_layout(tensor)))

    def storage_layout(tensor):
        return tensor.shape, tensor.stride(), tensor.storage_offset()

    monkeypatch.setattr(hook.SavedPass, "_send", other)
    assert "the plan sends" in noticed("gpt", OFFLOAD)


@needs_memwall
def test_storages_that_come_back_in_another_order():
    def turn(applied):
        applied.hook.place = {number: -place for number, place in applied.hook.place.items()}
    assert "another order" in noticed("gpt", OFFLOAD.replace("prefetch=2", "prefetch=6"), turn)


@needs_memwall
def test_a_storage_that_is_sent_twice(monkeypatch):
    send = hook.SavedPass._send

    def twice(self, storage, move, tensor):
        send(self, storage, move, tensor)
        if move.number == 3:
            self.hook.streams.copy(self.hook.streams.out, storage.host, storage.device)

    monkeypatch.setattr(hook.SavedPass, "_send", twice)
    assert "copies to the host in forward, the plan has" in noticed("gpt", OFFLOAD)


@needs_memwall
def test_a_storage_that_is_not_sent():
    def stay(applied):
        number = applied.hook.moves.pop(2).number
        for numbers in [*applied.hook.given_back_behind.values(), *applied.hook.fetched_where.values()]:
            if number in numbers:
                numbers.remove(number)
    assert "copies to the host in forward, the plan has" in noticed("gpt", OFFLOAD, stay)


@needs_memwall
def test_pageable_memory():
    def pageable(applied):
        applied.hook.pool.pinned = False
    assert "page-locked" in noticed("gpt", OFFLOAD, pageable)


@needs_memwall
def test_a_copy_back_that_comes_too_early():
    def at_once(applied):
        applied.hook.fetched_where = {-1: [n for numbers in applied.hook.fetched_where.values() for n in numbers]}
    assert higher_peak(noticed("gpt", OFFLOAD, at_once))


@needs_memwall
def test_memory_that_is_not_given_back():
    def kept(self, tensor):
        KEPT.append(tensor.detach())
        return WHOLE(self, tensor)

    storages.SavedStorage.whole = kept
    try:
        assert higher_peak(noticed("gpt", OFFLOAD))
    finally:
        storages.SavedStorage.whole = WHOLE
        KEPT.clear()


KEPT, WHOLE = [], storages.SavedStorage.whole


def test_content_of_another_storage(tmp_path, monkeypatch):
    monkeypatch.setattr(streams.HostPool, "take", lambda self, size: (one_buffer(self), None))
    assert not equal(tmp_path, Gpt, moves())


def test_a_layout_that_is_lost(tmp_path, monkeypatch):
    def plain_view(self, dtype, layout):
        return self.device.view(dtype)[:torch.Size(layout[0]).numel()].view(layout[0])
    monkeypatch.setattr(storages.SavedStorage, "view", plain_view)
    with pytest.raises((RuntimeError, AssertionError)):
        assert equal(tmp_path, Gpt, moves())


# ---- the optimizer

def test_the_gradient_of_the_first_of_two_passes(tmp_path, monkeypatch):
    before, sent = optimizer.HostOptimizer._before, set()

    def stale(self, *arguments):
        for one in self.copies.values():
            one.sent = grad_of(one.parameter)._version
        sent.clear()
        return before(self, *arguments)

    def arrived(self, parameter):
        if parameter not in sent:
            sent.add(parameter)
            self._send(self.copies[parameter])

    monkeypatch.setattr(optimizer.HostOptimizer, "_before", stale)
    monkeypatch.setattr(optimizer.HostOptimizer, "_arrived", arrived)
    assert not equal(tmp_path, Gpt, HOST_OPTIMIZER, accumulation=2)


def test_clipping_that_the_host_does_not_see(tmp_path, monkeypatch):
    monkeypatch.setattr(optimizer._Copy, "is_newer", property(lambda copy: False))
    assert not equal(tmp_path, Gpt, HOST_OPTIMIZER, clip=0.01)


def test_parameters_that_do_not_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(streams.Streams, "copy_all", lambda *_: None)
    assert not equal(tmp_path, Gpt, HOST_OPTIMIZER)


# ----

def higher_peak(said):
    """Is that all that is said?"""
    return re.fullmatch(r"The captured step is not the planned one:\s+The peak of memory is \d+ bytes, \+[\d.]+ % of what the plan "
                        r"expects \(\d+\)\.", said)


def copy_without(_wait, waits_for_itself=False):
    def copy(self, side, target, source, after=None):
        with torch.cuda.stream(side):
            if waits_for_itself:
                torch.cuda.current_stream().wait_event(side.record_event())
            target.copy_(source, non_blocking=True)
        return side.record_event()
    return copy


def give_back_at_once(self, storage):
    storage.left = storage.device = None
    self.in_flight.remove(storage)


def one_buffer(pool):
    if not hasattr(pool, "only"):
        pool.only = torch.empty(1 << 24, dtype=torch.uint8, device="cpu", pin_memory=pool.pinned)
    return pool.only
