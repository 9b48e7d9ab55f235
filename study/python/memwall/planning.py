"""Memory plans within a budget."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Union

from . import _memwall, words
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
        asked = self._plan.scenario
        of_step = {key: asked.pop(key) for key in ("step", "execution_traces", "onto", "second_size", "measured_on")}
        same = of_step == self._step._words
        files = of_step.pop("step")
        step = self._step if same else Step(*files, **of_step)
        asked["policies"] += self.policies
        if asked["policies"]:  # a plan is for a GPU whose memory is the budget
            asked["budget"] = f"{self.budget_bytes}B"
        return Scenario(step, asked.pop("machine") or None, **asked)

    @property
    def step_time(self) -> Optional[float]:
        """Mean time of a step with the plan, in seconds, of the nearest one where none fits; ``None`` without any."""
        return self._plan.step_time

    @property
    def budget_bytes(self) -> int:
        """The budget, in bytes."""
        return self._plan.budget_bytes

    @property
    def missing_bytes(self) -> int:
        """What the best plan is above the budget, in bytes; 0: it fits."""
        return self._plan.missing_bytes

    @property
    def samples(self) -> int:
        """How many samples a step of the largest batch has, where ``objective="batch"``; else 0."""
        return self._plan.samples

    def json(self) -> str:
        """The same bytes as ``memwall plan --format json``. Raises nothing.

        >>> import memwall as mw
        >>> import json
        >>> json.loads(mw.plan(mw.Step.sample(), smallest=False).json())["plans"][0]["fits"]
        'yes'
        """
        return self._plan.json()

    @property
    def data(self) -> Dict[str, Any]:
        """The JSON as Python's dictionaries and lists."""
        data: Dict[str, Any] = json.loads(self.json())
        return data

    def file(self) -> str:
        """The plan's file (JSON) as ``memwall plan -o`` writes it: for ``--plan``, ``memwall emit`` and
        ``memwall_apply``. Raises `Error` where no plan was found.

        >>> import memwall as mw
        >>> step = mw.Step("gpt2-124m", layers=2, batch=4, sequence=256)
        >>> plan = mw.plan(mw.Scenario(step, "a100-sxm-40gb"), budget="1300MiB", smallest=False)
        >>> '"format": "memwall-plan"' in plan.file()
        True
        """
        return self._step._study.plan_file(self._plan)

    def write(self, path: PathLike) -> None:
        """Writes `file` to ``path``. Raises `Error` where no plan was found, and `OSError`.

        >>> import os, tempfile
        >>> import memwall as mw
        >>> step = mw.Step("gpt2-124m", layers=2, batch=4, sequence=256)
        >>> plan = mw.plan(mw.Scenario(step, "a100-sxm-40gb"), budget="1300MiB", smallest=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "plan.json")
        ...     plan.write(path)
        ...     mw.run(mw.Scenario(step, "a100-sxm-40gb", plan=path), quick=True).fits
        True
        """
        place, text = words.path("Plan.write(path)", path), self.file()
        with open(place, "w", encoding="utf-8") as file:
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
    data-parallel GPUs over which the step may be laid out. ``smallest``: look for the smallest budget, too. ``jobs``:
    threads (0: as many as the computer runs).

    Raises `Error` with the sentences of ``memwall plan``. Where no plan is found, `Plan.fits` is false. Ctrl-C stops it.

    >>> import memwall as mw
    >>> mw.plan(mw.Step.sample(), smallest=False)  # doctest: +ELLIPSIS
    <memwall.Plan: the step as it is, 0.0... s>
    """
    asked = _scenario("plan", scenario)

    def where(name: str) -> str:
        return f"plan({name}=...)"

    if words.text(where("objective"), objective) not in ("time", "batch"):
        raise Error(f"--objective {objective}: expected time (the shortest step) or batch (the most samples).")
    settings = [] if words.truth(where("recompute"), recompute) else ["recompute=0"]
    if words.text(where("robust"), robust, 'a share as a text, as in "20%"'):
        settings.append(f"robust={robust}")
    question = {
        "scenario": asked._words,
        "budget": words.text(where("budget"), budget, 'a size as a text, as in "24GiB"'),
        "robust": robust,
        "tiers": words.text(where("tiers"), tiers, 'names of tiers joined by +, as in "host+nvme"'),
        "settings": ",".join(settings),
        "ranks": words.whole(where("ranks"), ranks),
        "smallest": words.truth(where("smallest"), smallest),
        "jobs": words.whole(where("jobs"), jobs),
        "batch": objective == "batch",
        "observed": words.path(where("observed"), observed),
        "accept_gaps": words.truth(where("accept_gaps"), accept_gaps),
    }
    return Plan(asked.step._study.plan(question), asked.step)
