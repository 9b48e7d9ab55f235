"""One question about a step."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Optional, Sequence, Union

from . import _memwall
from .machine import Machine
from .step import PathLike, Step
from .words import path, refuse, scenario_words

_OF_STEP = ("step", "execution_traces", "onto", "second_size", "measured_on")
_A_STEP = "a Step, a path or several, a network's name, or the line of a scenario"


class Scenario:
    """A step on a machine under policies: one question, as a value.

    ``step`` is a `Step`, a path, a network's name, or the line of a whole scenario (``"step=... machine=..."``), beside
    which nothing else is given. Scenarios of one `Step` object share what was read. ``machine``: a `Machine`, a name or a
    file; default: the machine that the step was measured on. ``policies``: as ``--policy`` takes them. The other words
    are those of ``memwall run``:

    - ``settings``: numbers of the machine, as `Machine.set` takes them, also where the step names the machine itself,
    - ``budget``: GPU memory that the step's storages may take, ``"24GiB"`` or ``"60%"`` of what the machine has,
    - ``pager``: what decides online what leaves a full GPU, ``"lru"``,
    - ``plan``: the file of a memory plan that is carried out; ``executable="torch"``: plans do what PyTorch executes,
    - ``allocator`` and ``allocator_settings`` (as ``PYTORCH_ALLOC_CONF``),
    - ``scale``: factors of durations, ``["kernels=1.1"]``; ``repeat``: how many times the step runs in a row,
    - ``transfer_host``: on another machine the host's calls change, too.

    A scenario does not change; `replace` makes another. Raises `TypeError` for a word of another type, `Error` for a line
    that is none; names, numbers and units are looked at by `check`, and by whoever runs the scenario.

    >>> import memwall as mw
    >>> scenario = mw.Scenario("step.mwt", "h100-sxm-80gb", policies=["checkpoint:mode=full"])
    >>> scenario.line()
    'step=step.mwt policy=checkpoint:mode=full machine=h100-sxm-80gb'
    >>> mw.Scenario(scenario.line()) == scenario
    True
    """

    def __init__(
        self,
        step: Union[Step, PathLike, Sequence[PathLike]],
        machine: Union[Machine, PathLike, None] = None,
        *,
        policies: Sequence[str] = (),
        settings: Sequence[str] = (),
        budget: str = "",
        pager: str = "",
        plan: PathLike = "",
        executable: str = "",
        allocator: str = "pytorch",
        allocator_settings: str = "",
        scale: Sequence[str] = (),
        repeat: int = 1,
        transfer_host: bool = False,
    ):
        given = {
            "policies": policies,
            "settings": settings,
            "budget": budget,
            "pager": pager,
            "plan": plan,
            "executable": executable,
            "allocator": allocator,
            "allocator_settings": allocator_settings,
            "scale": scale,
            "repeat": repeat,
            "transfer_host": transfer_host,
        }
        own = scenario_words("Scenario", given)
        if machine is not None:
            if not isinstance(machine, Machine):
                machine = Machine(path("Scenario(machine)", machine, "a Machine, a machine's name or its file"))
            own.update(machine=machine.name, settings=[*machine.settings, *own["settings"]])
        if isinstance(step, str) and step.startswith("step="):
            if own != Scenario._defaults():
                raise TypeError("Scenario(): the line of a scenario is the whole question; expected nothing beside it")
            words = _memwall.words_of(step)
            step = Step(*words["step"], **{key: words[key] for key in _OF_STEP[1:]})
            own = {key: value for key, value in words.items() if key not in _OF_STEP}
        elif isinstance(step, (str, os.PathLike)):
            step = Step(step)
        elif not isinstance(step, Step):
            if not isinstance(step, Iterable):
                refuse("Scenario(step)", step, _A_STEP)
            step = Step(*(path("Scenario(step)", one, _A_STEP) for one in step))
        self._step: Step = step
        self._words: Dict[str, Any] = {**step._words, **own}

    @staticmethod
    def _defaults() -> Dict[str, Any]:
        return {
            **{key: [] for key in ("policies", "settings", "scale")},
            **{key: "" for key in ("budget", "pager", "plan", "executable", "allocator_settings")},
            "allocator": "pytorch",
            "repeat": 1,
            "transfer_host": False,
        }

    @property
    def step(self) -> Step:
        """The step."""
        return self._step

    @property
    def machine(self) -> Optional[Machine]:
        """The machine, settings included; ``None``: the one that the step was measured on."""
        name = self._words.get("machine", "")
        return Machine(name, *self._words["settings"]) if name else None

    def line(self) -> str:
        """The scenario as one line of text, which `Scenario`, ``memwall run`` and ``memwall sweep`` read.

        Raises `Error` for a scenario without a step.

        >>> import memwall as mw
        >>> mw.Scenario("gpt2-124m", "h100-sxm-80gb", budget="24GiB").line()
        'step=gpt2-124m machine=h100-sxm-80gb budget=24GiB'
        """
        return _memwall.line_of(self._words)

    def replace(self, **words: Any) -> "Scenario":
        """The same question with other words: those of `Scenario`, by name. What is read of the step is shared, unless
        ``step`` is another. Raises as `Scenario` does.

        >>> import memwall as mw
        >>> base = mw.Scenario("step.mwt", policies=["checkpoint"])
        >>> base.replace(machine="h100-sxm-80gb", policies=[]).line()
        'step=step.mwt machine=h100-sxm-80gb'
        """
        own = {key: value for key, value in self._words.items() if key in Scenario._defaults()}
        own.update(step=self._step, machine=self._words.get("machine") or None)
        if "machine" in words:
            own["settings"] = []  # they are of the other
        return Scenario(**{**own, **words})

    def check(self) -> None:
        """Raises `Error` for what is wrong with the words, before the step is read: names of policies, pager, allocator
        and machine, numbers and units.

        >>> import memwall as mw
        >>> mw.Scenario("step.mwt", "h100-sxm-80gb", budget="24GiB").check()
        """
        self._step._study.check(self._words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.line() == other.line()

    def __hash__(self) -> int:
        return hash(self.line())

    def __reduce__(self) -> Any:
        return Scenario, (self.line(),)  # the step is read again where it arrives

    def __repr__(self) -> str:
        return f"Scenario({self.line()!r})"


def _scenario(of: str, given: Union[Scenario, Step, PathLike]) -> Scenario:
    """The scenario that is meant. ``of``: the function that was given it, for its refusal."""
    if isinstance(given, Scenario):
        return given
    if not isinstance(given, (Step, str, os.PathLike)):
        refuse(f"{of}(scenario)", given, "a Scenario, a Step, a path, a network's name, or the line of a scenario")
    return Scenario(given)
