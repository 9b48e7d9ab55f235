"""What is asked about: a training step."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Sequence, Union

from . import _memwall

PathLike = Union[str, "os.PathLike[str]"]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


class Step:
    """A training step: a trace, a capture, several ranks of a job, or a network by its name.

    ``files`` is what ``memwall run`` takes: a trace (``.mwt``), a capture (a profile of PyTorch, ``.mwc.gz``, ...), a
    folder or several captures (the ranks of one job), or the name of a network (`workloads`), with settings behind it or
    as keywords. The step is read when it is first asked for, once, and kept for all scenarios that name this object; it
    does not see that a file changes later. It may be used from several threads.

    ``execution_traces``: PyTorch's ExecutionTraces of the same run; ``onto``: the complete step whose dataflow a profile
    takes; ``second_size``: a capture of the same program at another size; ``measured_on``: the machine of the durations
    where the capture does not say it.

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
        names = [_text(file) for file in files]
        if settings:
            if len(names) != 1:
                raise TypeError("Step(): settings of a network stand behind one name")
            words = ",".join(f"{key}={_text(value)}" for key, value in settings.items())
            names[0] += ("," if ":" in names[0] else ":") + words
        self._words: Dict[str, Any] = {
            "step": names,
            "execution_traces": [_text(file) for file in execution_traces],
            "onto": _text(onto),
            "second_size": _text(second_size),
            "measured_on": _text(measured_on),
        }
        self._study = _memwall.Study()

    @classmethod
    def sample(cls) -> "Step":
        """The step that memwall comes with: one training step of a GPT-2 of 124 million parameters, as on an A100.

        >>> import memwall as mw
        >>> mw.Step.sample().facts()["name"]
        'gpt_124m'
        """
        return cls(_memwall.sample())

    @property
    def files(self) -> List[str]:
        """What was given: paths, or the name of a network with its settings."""
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
        return self._study.facts({**self._words, "machine": machine})

    def __getstate__(self) -> Dict[str, Any]:
        return self._words  # it is read again where it arrives

    def __setstate__(self, words: Dict[str, Any]) -> None:
        self._words, self._study = words, _memwall.Study()

    def __repr__(self) -> str:
        return f"Step({', '.join(repr(name) for name in self.files)})"
