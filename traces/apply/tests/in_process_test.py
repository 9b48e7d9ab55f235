"""docs/examples/plan_in_training.py: one process records its step, has it planned and trains with the plan. Is what it
learns what it learns without one?"""

import importlib.util
import os

import pytest

from planned import HERE

memwall = pytest.importorskip("memwall", reason="the Python package memwall is not installed: pip install .")


@pytest.fixture
def example():
    path = os.path.join(HERE, "..", "..", "..", "docs", "examples", "plan_in_training.py")
    spec = importlib.util.spec_from_file_location("plan_in_training", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_training_with_the_plan_is_training(example, capsys):
    planned = example.main("rtx-4090", "66MB")
    told = capsys.readouterr().out
    assert "plan:budget=66MB" in told and "'unit_reruns': 12" in told
    assert example.main("rtx-4090", "60%") == planned
    assert "no plan is needed" in capsys.readouterr().out


def test_what_no_plan_keeps_to_is_told(example):
    with pytest.raises(SystemExit, match="No plan keeps the step to 20MB: [0-9]+ bytes are missing"):
        example.main("rtx-4090", "20MB")
