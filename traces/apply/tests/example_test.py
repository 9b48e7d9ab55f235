"""The example of the README, as it stands there, for a Llama that does not fit the budget."""

import os
import sys

import pytest
import torch

from planned import HERE, PROGRAM, needs_memwall

sys.path.insert(0, os.path.join(HERE, "..", "..", "samples", "captures"))

import memwall_apply  # noqa: E402
import models  # noqa: E402


def example():
    with open(os.path.join(HERE, "..", "README.md")) as file:
        text = file.read().split("<!-- example -->")[1].split("<!-- end -->")[0]
    return text.split("```python\n")[1].split("```")[0]


def small_llama():
    return models.Llama(layers=6, width=256, heads=4, kv_heads=2, inner=1024, vocabulary=2000).to(torch.bfloat16)


def train_step(model, optimizer):
    words = torch.randint(0, 2000, (8, 256), device="cuda")
    model(words, torch.randint(0, 2000, (8, 256), device="cuda")).backward()
    optimizer.step()
    optimizer.zero_grad()


@needs_memwall
def test_the_example_does_what_it_says(tmp_path, monkeypatch, capsys):
    code = example()
    assert 0 < sum(bool(line.strip()) for line in code.splitlines()) <= 10
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.path.dirname(PROGRAM), prepend=os.pathsep)
    names = {"Llama": small_llama, "train_step": train_step, "torch": torch}
    exec(compile(code, "README.md", "exec"), names)
    assert capsys.readouterr().out.startswith("As planned: ")
    assert names["plan"].expected["peak_reserved_bytes"] <= 180e6
    unplanned = memwall_apply.verification.Captured(tmp_path / "step.mwc.gz").peak()
    assert unplanned > 180e6  # it does not fit without
    assert memwall_apply.verification.Captured(tmp_path / "planned.mwc.gz").peak() <= 180e6


@needs_memwall
def test_a_budget_that_nothing_keeps_to_is_an_error(tmp_path, monkeypatch):
    def build():
        model = small_llama().to("cuda")
        optimizer = torch.optim.AdamW(model.parameters())
        return model, optimizer, lambda: train_step(model, optimizer)

    memwall_apply.record(tmp_path / "step.mwc.gz", build)
    with pytest.raises(memwall_apply.ApplyError, match="No plan of rotor:budget=10MB keeps to its budget"):
        memwall_apply.plan(tmp_path / "step.mwc.gz", "rotor:budget=10MB", machine="rtx-4090", program=PROGRAM)
    with pytest.raises(memwall_apply.ApplyError, match="memwall makes no plan of rotors: .*rotors"):
        memwall_apply.plan(tmp_path / "step.mwc.gz", "rotors", machine="rtx-4090", program=PROGRAM)
    with pytest.raises(memwall_apply.ApplyError, match="There is no program memwoll"):
        memwall_apply.plan(tmp_path / "step.mwc.gz", "rotor", machine="rtx-4090", program="memwoll")
