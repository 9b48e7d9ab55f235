"""Memory plans within a budget."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Union

from . import _memwall
from .errors import Error
from .scenario import Scenario, _scenario
from .step import PathLike, Step


class Plan:
    """A recommended memory plan, and what it is held against.

    >>> import memwall as mw
    >>> step = mw.Step("gpt2-124m", layers=2, batch=4, sequence=256)
    >>> plan = mw.plan(mw.Scenario(step, "a100-sxm-40gb"), budget="1300MiB", smallest=False)
    >>> plan.fits, plan.budget_bytes
    (True, 1363148800)
    >>> abs(mw.run(plan.scenario, quick=True).step_time - plan.step_time) < 1e-9
    True
    """

    def __init__(self, plan: "_memwall.Plan", step: Step):
        self._plan = plan
        self._step = step

    @property
    def fits(self) -> bool:
        """Was a plan found that keeps to the budget?"""
        return self._plan.fits

    @property
    def policies(self) -> List[str]:
        """The policies that carry the plan out, beside those of the scenario; none: the step fits as it is."""
        return self._plan.policies

    @property
    def scenario(self) -> Scenario:
        """The scenario with the plan, to be run."""
        words = self._plan.scenario
        of_step = {key: words.pop(key) for key in ("step", "execution_traces", "onto", "second_size", "measured_on")}
        same = of_step == self._step._words
        files = of_step.pop("step")
        step = self._step if same else Step(*files, **of_step)
        words["policies"] += self.policies
        if words["policies"]:  # a plan is for a GPU whose memory is the budget
            words["budget"] = f"{self.budget_bytes}B"
        return Scenario(step, words.pop("machine") or None, **words)

    @property
    def step_time(self) -> Optional[float]:
        """Mean time of a step with the plan, in seconds, of the nearest one where none fits; ``None`` without any."""
        return self._plan.step_time

    @property
    def budget_bytes(self) -> int:
        """The budget."""
        return self._plan.budget_bytes

    @property
    def missing_bytes(self) -> int:
        """What the best plan is above the budget; 0: it fits."""
        return self._plan.missing_bytes

    @property
    def samples(self) -> int:
        """Samples per step of the largest batch, where ``objective="batch"``; else 0."""
        return self._plan.samples

    def json(self) -> str:
        """The same bytes as ``memwall plan --format json``."""
        return self._plan.json()

    @property
    def data(self) -> Dict[str, Any]:
        """The JSON as Python's dictionaries and lists."""
        return json.loads(self.json())

    def file(self) -> str:
        """The plan's file (JSON) as ``memwall plan -o`` writes it: for ``--plan``, ``memwall emit`` and
        ``memwall_apply``. Raises `Error` where no plan was found."""
        return self._step._study.plan_file(self._plan)

    def write(self, path: PathLike) -> None:
        """Writes `file` to ``path``. Raises `Error` where no plan was found, and `OSError`."""
        text = self.file()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def __repr__(self) -> str:
        if not self.fits:
            return "<memwall.Plan: none was found>"
        return f"<memwall.Plan: {' + '.join(self.policies) or 'the step as it is'}, {self.step_time:.6g} s>"


def plan(
    scenario: Union[Scenario, Step, PathLike],
    *,
    budget: str = "",
    tiers: str = "host",
    objective: str = "time",
    recompute: bool = True,
    robust: str = "",
    observed: PathLike = "",
    ranks: int = 0,
    smallest: bool = True,
    jobs: int = 0,
    accept_gaps: bool = False,
) -> Plan:
    """Recommends a memory plan within a budget (docs/planning.md).

    ``budget``: bytes of the GPU's memory that the step's storages may take, ``"24GiB"`` or ``"60%"``; default: all.
    ``tiers``: where storages may wait, the first preferred (``"host+nvme"``). ``objective``: ``"time"``, the shortest
    step, or ``"batch"``, the most samples. ``recompute=False``: nothing runs again. ``robust``: as if links were slower
    by this share (``"20%"``). ``observed``: a memory snapshot or profile of the step as it was measured. ``ranks``:
    data-parallel GPUs over which the step may be laid out. ``smallest``: look for the smallest budget, too.

    Raises `Error` with the sentences of ``memwall plan``. Where no plan is found, `Plan.fits` is false. Ctrl-C stops it.

    >>> import memwall as mw
    >>> mw.plan(mw.Step.sample(), smallest=False)  # doctest: +ELLIPSIS
    <memwall.Plan: the step as it is, 0.0... s>
    """
    asked = _scenario(scenario)
    if objective not in ("time", "batch"):
        raise Error(f"--objective {objective}: expected time (the shortest step) or batch (the most samples).")
    settings = [] if recompute else ["recompute=0"]
    if robust:
        settings.append(f"robust={robust}")
    words = {
        "scenario": asked._words,
        "budget": budget,
        "robust": robust,
        "tiers": tiers,
        "settings": ",".join(settings),
        "ranks": ranks,
        "smallest": smallest,
        "jobs": jobs,
        "batch": objective == "batch",
        "observed": os.fspath(observed),
        "accept_gaps": accept_gaps,
    }
    return Plan(asked.step._study.plan(words), asked.step)
