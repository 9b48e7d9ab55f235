"""Damaged plans and captures: a sentence or, where the damage says nothing else, no difference; never another exception.

The same damages in every run; MEMWALL_LONG=1 makes more of them."""

import copy
import gzip
import json
import os
import random

import pytest
import torch

from planned import FOLDER, capture, needs_memwall, plan_for
from programs import HOST_OPTIMIZER, Gpt, lazy, offload, saved_sizes, units, write_plan

import memwall_apply
from memwall_apply import __main__ as command

ROUNDS = 10 if os.environ.get("MEMWALL_LONG") else 1
POLICIES = ["selective:save=mm+sdpa", "checkpoint:ops=gelu", "offload:what=activations,to=host,min_bytes=65536,prefetch=2",
            "checkpoint:mode=full offload:what=optimizer,to=host"]
JUNK = [None, -1, 0, float("inf"), 1.5, "x", "", [], {}, True, 10**30, [[]], [None], {"a": 1}, "\ud800"]


@pytest.fixture(scope="module")
def planned():
    """(plan, its document, lines of the step that was captured with it) of each of POLICIES."""
    found = []
    for policies in POLICIES:
        plan = plan_for("gpt", policies)
        with open(plan.path, "rb") as file:
            document = json.loads(file.read())
        with gzip.open(capture("gpt", os.path.join(FOLDER.name, "damaged.mwc.gz"), plan)) as file:
            found.append((plan, document, file.read().decode().splitlines()))
    return found


def damaged(document, chance):
    """Of one member, deep inside as often as not, another value or none."""
    owner = key = None
    value = document
    while isinstance(value, (dict, list)) and value and (owner is None or chance.random() < 0.8):
        owner, key = value, chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        value = value[key]
    how = chance.randrange(4)
    if how == 0:
        del owner[key]
    elif how == 1 and isinstance(value, (int, float)) and not isinstance(value, bool):
        owner[key] = value + chance.choice([-1, 1, 1000])
    else:
        owner[key] = copy.deepcopy(chance.choice(JUNK))
    return document


def damaged_bytes(data, chance):
    if chance.random() < 0.3:
        return data[:chance.randrange(len(data))]
    data = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def is_refused(what, *arguments):
    """Any other exception than a sentence fails the test."""
    try:
        what(*arguments)
    except memwall_apply.ApplyError as error:
        assert str(error)[-1] in ".?" or "\n" in str(error), str(error)
        return True
    return False


def counted(outcomes):
    outcomes = list(outcomes)
    assert 0.3 * len(outcomes) < sum(outcomes), "most damages should be noticed"


# ---- plans

@needs_memwall
def test_damaged_members_of_plans(planned, tmp_path):
    chance, path = random.Random(1), tmp_path / "step.plan"
    step = tmp_path / "step.mwc"

    def one(i):
        _, document, lines = planned[i % len(planned)]
        with open(path, "w") as file:
            json.dump(damaged(copy.deepcopy(document), chance), file)
        if is_refused(memwall_apply.load, path):
            return True
        if i % 10 == 0:
            step.write_text("\n".join(lines))
            return is_refused(memwall_apply.verify, path, step)
        return False

    counted(one(i) for i in range(1200 * ROUNDS))


@needs_memwall
def test_damaged_bytes_of_plans(planned, tmp_path):
    chance, path = random.Random(2), tmp_path / "step.plan"

    def one(i):
        data = json.dumps(planned[i % len(planned)][1]).encode()
        path.write_bytes(damaged_bytes(gzip.compress(data, mtime=0) if i % 2 else data, chance))
        return is_refused(memwall_apply.load, path)

    counted(one(i) for i in range(400 * ROUNDS))


def small_plans():
    model = Gpt()
    sizes = saved_sizes(model)
    yield {**units(["h.0"], ["h.1", "h.2"], save_ops=["aten::addmm"]), **HOST_OPTIMIZER}
    yield lazy([("h.0", "aten::gelu"), ("h.0.up", "aten::addmm")])
    yield offload(sizes)


def test_what_is_read_of_a_damaged_plan_can_be_applied_or_is_refused(tmp_path):
    chance, path = random.Random(3), tmp_path / "step.plan"
    realizations = [json.loads(open(write_plan(path, Gpt(), one).path).read()) for one in small_plans()]

    def apply_and_run(plan):
        model = Gpt()
        optimizer = torch.optim.AdamW(model.parameters())
        memwall_apply.apply(model, plan, optimizer)
        for _ in range(2):
            model(*model.batch()).backward()
            optimizer.step()
            optimizer.zero_grad()

    def one(i):
        document = copy.deepcopy(realizations[i % len(realizations)])
        del document["realization"]["model"]  # or most damages are in the names of parameters
        path.write_text(json.dumps(damaged(document, chance)))
        return is_refused(lambda: apply_and_run(memwall_apply.load(path)))

    counted(one(i) for i in range(90 * ROUNDS))


@pytest.mark.parametrize(("place", "value", "match"), [
    (("expected",), [1], r"the plan.expected: found \[1\]; expected an object"),
    (("expected",), {"peak_requested_bytes": "x"}, r'expected.peak_requested_bytes: found "x"; expected a whole number'),
    (("realization", "forwards"), 10**30, "realization.forwards: found 1000.*; expected a whole number from 0"),
    (("realization", "offload", 0, "moves", 5, "give_back"), 2, r"moves\[5\].give_back: found 2; expected -1, or 5 or more"),
    (("realization", "offload", 0, "moves", 5, "number"), 4, "found number 4 twice; expected each storage to travel once"),
    (("realization", "offload", 0, "moves", 5, "module"), {}, r"moves\[5\].module: found {}; expected a word"),
    (("realization", "offload", 0, "fetch_order"), ["a"], r"fetch_order: found \[\"a\"\]; expected a list of whole numbers"),
    (("realization", "optimizer", "buffers"), "5", r'realization.optimizer.buffers: found "5"; expected a whole number'),
    (("realization", "runs_again"), [{"unit": 9, "ops": []}], r"runs_again\[0\].unit: found 9; expected a whole number from 0 to"),
    (("realization", "runs_again"), [{"ops": [["a"]]}], r'runs_again\[0\].ops\[0\]: found \["a"\]; expected \[module, operator\]'),
    (("realization", "lazy_ops"), [{"ops": [{"module": "", "op": "a", "calls": [[]]}], "preserve_rng": True}],
     r"ops\[0\].calls: found \[\[\]\]; expected a list of whole numbers"),
])
def test_a_damaged_member(tmp_path, place, value, match):
    model, path = Gpt(), tmp_path / "step.plan"
    write_plan(path, model, {**offload(saved_sizes(model)), **HOST_OPTIMIZER}, {"peak_requested_bytes": 1})
    document = owner = json.loads(path.read_text())
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = value
    path.write_text(json.dumps(document))
    with pytest.raises(memwall_apply.ApplyError, match="step.plan: .*" + match):
        memwall_apply.load(path)


# ---- captures

@needs_memwall
def test_damaged_lines_of_captures(planned, tmp_path):
    chance, path = random.Random(4), tmp_path / "step.mwc"

    def one(i):
        plan, _, lines = planned[i % len(planned)]
        lines = list(lines)
        for _ in range(chance.randrange(1, 3)):
            at = chance.randrange(len(lines))
            how = chance.randrange(4)
            if how == 0:
                del lines[at]
            elif how == 1:
                lines.insert(at, chance.choice(lines))
            else:
                lines[at] = json.dumps(damaged(json.loads(lines[at]) or {"x": 1}, chance))
        path.write_text("\n".join(lines))
        return is_refused(memwall_apply.verify, plan, path)

    counted(one(i) for i in range(350 * ROUNDS))


@needs_memwall
def test_damaged_bytes_of_captures(planned, tmp_path):
    chance, path = random.Random(5), tmp_path / "step.mwc"

    def one(i):
        plan, _, lines = planned[i % len(planned)]
        data = "\n".join(lines).encode()
        path.write_bytes(damaged_bytes(gzip.compress(data, mtime=0) if i % 2 else data, chance))
        return is_refused(memwall_apply.verify, plan, path)

    counted(one(i) for i in range(60 * ROUNDS))


STORAGE = {"storage": 0, "bytes": 8, "kind": "activation", "place": "hbm"}
HEADER = {"format": "memwall-capture"}


@pytest.mark.parametrize(("records", "match"), [
    ([{**STORAGE, "bytes": "8"}], 'line 2: found bytes "8"; expected a whole number from 0'),
    ([{**STORAGE, "bytes": 10**30}], "line 2: found bytes 1000.*; expected a whole number from 0"),
    ([{**STORAGE, "bytes": None}], "line 2: found a record of type storage without bytes; expected a whole number"),
    ([{**STORAGE, "place": "disk"}], 'line 2: found place "disk"; expected one of hbm, host, host_pinned'),
    ([{**STORAGE, "storage": []}], r"line 2: found storage \[\]; expected a whole number"),
    ([STORAGE, STORAGE], "line 3: found storage 0 a second time; expected each to be described once"),
    ([{"alloc": 0}], "line 2: found storage 0, which no line before describes; expected a storage's record"),
    ([{"op": ""}], 'line 2: found op ""; expected a name'),
    ([{"op": "aten::mm", "reads": 3}], "line 2: found reads 3; expected a list of whole numbers"),
    ([{"op": "aten::mm", "kernels": True}], "line 2: found kernels true; expected a whole number"),
    ([{"op": "aten::mm", "copy": 3}], "line 2: found a record of types op and copy; expected one of"),
    ([{"copy": 8, "from": "hbm"}], "line 2: found a record of type copy without to; expected one of hbm"),
    ([{"event": "x", "number": 1}], 'line 2: found event "x"; expected one of record, wait'),
    ([{"event": "wait"}], "line 2: found a record of type event without number"),
    ([{"synchronize": 1}], "line 2: found synchronize 1; expected one of stream"),
    ([STORAGE, {"alloc": 0}, {"end": 3}], "line 4: found the end of 3 records behind 2; expected none to be missing"),
    ([{"end": 0}, {"op": "aten::mm"}], "line 3: found a record of type op behind the end"),
    (["[" * 100000], "line 2: found what is no JSON"),
])
def test_a_damaged_record(tmp_path, records, match):
    path = tmp_path / "step.mwc"
    path.write_text("\n".join([json.dumps(HEADER), *(r if isinstance(r, str) else json.dumps(r) for r in records)]) + "\n")
    plan = write_plan(tmp_path / "step.plan", Gpt(), units(["h.0"]))
    with pytest.raises(memwall_apply.ApplyError, match="step.mwc, " + match):
        memwall_apply.verify(plan, path)


@needs_memwall
def test_a_capture_that_was_cut_off(planned, tmp_path):
    plan, _, lines = planned[0]
    path = tmp_path / "step.mwc"
    for kept in (lines[:-1], lines[:-2] + lines[-1:]):
        path.write_text("\n".join(kept) + "\n")
        with pytest.raises(memwall_apply.ApplyError, match="the file was cut off|none to be missing"):
            memwall_apply.verify(plan, path)
    path.write_text("\n".join(lines) + "\n")
    memwall_apply.verify(plan, path)


@needs_memwall
def test_the_command_prints_names_of_any_characters(planned, tmp_path, capsys):
    plan, _, lines = planned[0]
    path = tmp_path / "step.mwc"
    path.write_text("\n".join(lines).replace("aten::native_layer_norm", "\\ud800"))
    assert command.main(["verify", plan.path, str(path)]) == 1
    assert "\\ud800" in capsys.readouterr().out
