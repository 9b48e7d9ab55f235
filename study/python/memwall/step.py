"""What is asked about: a training step."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Sequence, Union

from . import _memwall, words

PathLike = Union[str, "os.PathLike[str]"]


def _paths(where: str, given: Any) -> List[str]:
    if isinstance(given, (str, os.PathLike)):
        return [words.path(where, given)]
    if not isinstance(given, Iterable):
        words.refuse(where, given, "paths")
    return [words.path(where, one, "paths") for one in given]


class Step:
    """A training step: a trace, a capture, several ranks of a job, or a network by its name.

    ``files`` is what ``memwall run`` takes: a trace (``.mwt``), a capture (a profile of PyTorch, ``.mwc.gz``, ...), a
    folder or several captures (the ranks of one job), or the name of a network (`workloads`), with settings behind it or
    as keywords. The step is read when it is first asked for, once, and kept for all scenarios that name this object; it
    does not see that a file changes later. It may be used from several threads.

    ``execution_traces``: PyTorch's ExecutionTraces of the same run; ``onto``: the complete step whose dataflow a profile
    takes; ``second_size``: a capture of the same program at another size; ``measured_on``: the machine of the durations
    where the capture does not say it.

    Raises `TypeError` for what is no path, name or setting. What is wrong with a file or a setting is an `Error` of whoever
    reads the step first.

    >>> import memwall as mw
    >>> mw.Step("gpt2-124m", batch=2, precision="bf16")
    Step('gpt2-124m:batch=2,precision=bf16')
    """

    def __init__(
        self,
        *files: PathLike,
        execution_traces: Sequence[PathLike] = (),
        onto: PathLike = "",
        second_size: PathLike = "",
        measured_on: PathLike = "",
        **settings: Any,
    ):
        names = [words.path("Step(files)", file, "paths, or a network's name") for file in files]
        if settings:
            if len(names) != 1:
                raise TypeError("Step(): settings of a network stand behind one name")
            listed = ",".join(f"{key}={words.setting(f'Step({key}=...)', value)}" for key, value in settings.items())
            names[0] += ("," if ":" in names[0] else ":") + listed
        self._words: Dict[str, Any] = {
            "step": names,
            "execution_traces": _paths("Step(execution_traces=...)", execution_traces),
            "onto": words.path("Step(onto=...)", onto),
            "second_size": words.path("Step(second_size=...)", second_size),
            "measured_on": words.path("Step(measured_on=...)", measured_on, "a machine's name or its file"),
        }
        self._study = _memwall.Study()

    @classmethod
    def sample(cls) -> "Step":
        """The step that memwall comes with: one training step of a GPT-2 of 124 million parameters, as on an A100. Raises
        `Error` where the package's files are incomplete.

        >>> import memwall as mw
        >>> mw.Step.sample().facts()["name"]
        'gpt_124m'
        """
        return cls(_memwall.sample())

    @property
    def files(self) -> List[str]:
        """What was given: paths, or the name of a network with its settings, as texts."""
        return list(self._words["step"])

    def facts(self, machine: str = "") -> Dict[str, Any]:
        """What is known of the step before anything runs; reads it.

        Returns ``name``, ``machine`` (the one it was measured on, or ``machine``), ``ops`` and ``storages`` (how many),
        ``notes`` (sentences on what was concluded) and ``files`` that were read. Raises `Error` where the step cannot be
        read, or no machine is known (of a network one has to be named).

        >>> import memwall as mw
        >>> facts = mw.Step("gpt2-124m", batch=1).facts(machine="h100-sxm-80gb")
        >>> facts["name"], facts["ops"] > 1000
        ('gpt2-124m', True)
        """
        name = words.path("Step.facts(machine)", machine, "a machine's name or its file")
        return self._study.facts({**self._words, "machine": name})

    def __getstate__(self) -> Dict[str, Any]:
        return self._words  # it is read again where it arrives

    def __setstate__(self, given: Dict[str, Any]) -> None:
        self._words, self._study = given, _memwall.Study()

    def __repr__(self) -> str:
        return f"Step({', '.join(repr(name) for name in self.files)})"
