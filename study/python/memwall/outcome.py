"""What came of a scenario."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Sequence, Union

from . import _memwall, words
from .figure import Figure
from .scenario import Scenario, _scenario
from .step import PathLike, Step
from .table import Table


class Outcome:
    """What came of a scenario: figures, tables and drawings of one simulated run.

    ``outcome["step_time_s"]`` and ``outcome["tiers.hbm.peak_reserved_bytes"]`` are the fields of ``memwall run --format
    json`` (docs/run_json.md), under their names, nested ones by dots; the attributes below are the ones most asked for.
    `json` has all of them. Tables are made when they are asked for. Made by `run` and `read_run`, never by hand.

    >>> import memwall as mw
    >>> outcome = mw.run(mw.Scenario(mw.Step.sample(), policies=["checkpoint:mode=full"]))
    >>> outcome.fits, 0.01 < outcome.step_time < 1
    (True, True)
    >>> outcome["tiers.hbm.peak_reserved_bytes"] == outcome.peak_bytes
    True
    """

    def __init__(self, run: "_memwall.Run"):
        self._run = run
        self._known: Optional[Dict[str, float]] = None
        self._data: Optional[Dict[str, Any]] = None

    # --- figures

    @property
    def _fields(self) -> Dict[str, float]:
        if self._known is None:
            self._known = dict(self._run.fields())
        return self._known

    @property
    def fits(self) -> Optional[bool]:
        """Did every tier have room, and the run keep to the budgets of its policies? Where not, times take memory as
        unlimited. ``None`` where the capture does not say what takes memory."""
        value = self._fields.get("fits")
        return None if value is None else bool(value)

    @property
    def step_time(self) -> float:
        """Mean time of a step, in seconds."""
        return self._fields["step_time_s"]

    @property
    def samples_per_second(self) -> Optional[float]:
        """Samples per second of all ranks; ``None`` where the step does not say how many it has."""
        return self._fields.get("samples_per_s")

    @property
    def peak_bytes(self) -> Optional[int]:
        """The most bytes that the allocator obtained from the GPU's memory, of the fullest of the ranks; ``None`` where the
        capture knows no memory."""
        return self._whole("peak_reserved_bytes")

    @property
    def missing_bytes(self) -> Optional[int]:
        """Bytes beyond what the GPU's memory has, at worst, of the rank that lacks most; 0: it fits there."""
        return self._whole("missing_bytes")

    def _whole(self, name: str) -> Optional[int]:
        value = self._fields.get(name)
        return None if value is None else int(value)

    @property
    def data(self) -> Dict[str, Any]:
        """The JSON of the run as Python's dictionaries and lists; units stand behind names."""
        if self._data is None:
            self._data = json.loads(self.json())
        return self._data

    def __getitem__(self, name: str) -> Any:
        """A field of the JSON by its name, ``"links.pcie_h2d.bytes"``; units stand behind names: ``_s`` seconds, ``_bytes``
        bytes. Raises `KeyError` where the run has none, `TypeError` for what is no name.

        >>> import memwall as mw
        >>> outcome = mw.run(mw.Step.sample())
        >>> outcome["step_time_s"] == outcome.step_time, outcome["links.pcie_h2d.bytes"] >= 0
        (True, True)
        """
        words.text("Outcome[name]", name, 'the name of a field, as in "step_time_s"')
        if name in self._fields and name != "fits":
            value = self._fields[name]
            return int(value) if name.split(".")[-1].split("_")[-1] == "bytes" else value
        at: Any = self.data
        for part in name.split("."):
            if not isinstance(at, dict) or part not in at:
                raise KeyError(name)
            at = at[part]
        return at

    def get(self, name: str, default: Any = None) -> Any:
        """The field, or ``default`` where the run has none. Raises `TypeError` for what is no name.

        >>> import memwall as mw
        >>> mw.run(mw.Step.sample()).get("links.nvlink9.bytes", 0)
        0
        """
        try:
            return self[name]
        except KeyError:
            return default

    def json(self) -> str:
        """All figures as ``memwall run --format json --no-provenance`` prints them: the same bytes. Raises nothing.

        >>> import memwall as mw
        >>> import json
        >>> json.loads(mw.run(mw.Scenario(mw.Step.sample())).json())["trace"]
        'gpt_124m'
        """
        return self._run.json()

    @property
    def verdict(self) -> List[str]:
        """The answer in sentences, as ``memwall run`` prints it first."""
        return list(self.data.get("verdict", []))

    @property
    def stages(self) -> List[Dict[str, Any]]:
        """Of a job whose model is divided into stages: time and memory of each rank's stages, as ``pipeline.by_rank`` of
        the JSON has them (docs/run_json.md). Empty where nothing is said of stages."""
        return list(self.data.get("pipeline", {}).get("by_rank", []))

    def training(self, tokens: float, *, price_per_gpu_hour: Optional[float] = None) -> Dict[str, float]:
        """What it takes to train on so many tokens, as ``memwall run --train-tokens`` says it: ``tokens``, ``steps``,
        ``seconds``, ``gpu_hours``, and, where prices and powers are known, ``dollars`` and ``joules``.
        ``price_per_gpu_hour``: in dollars, in place of what the machine says. Raises `Error` where the step does not say
        how many tokens it has.

        >>> import memwall as mw
        >>> outcome = mw.run(mw.Scenario("gpt2-124m", "h100-sxm-80gb"))
        >>> training = outcome.training(1e9, price_per_gpu_hour=2)
        >>> abs(training["seconds"] - training["steps"] * outcome.step_time) < 1
        True
        >>> abs(training["dollars"] - 2 * training["gpu_hours"]) < 1e-6
        True
        """
        price = price_per_gpu_hour
        if price is not None:
            price = words.number("Outcome.training(price_per_gpu_hour=...)", price, "a number, or None")
        return dict(self._run.training(words.number("Outcome.training(tokens)", tokens), price))

    @property
    def warnings(self) -> List[str]:
        """Sentences on what was set and changed nothing."""
        return self._run.warnings

    @property
    def tiers(self) -> List[str]:
        """Names of the tiers of memory, the GPU's first."""
        return self._run.tiers

    @property
    def links(self) -> List[str]:
        """Names of the links."""
        return self._run.links

    # --- tables

    @property
    def ops(self) -> Table:
        """One row per op of the step, with the columns of ``memwall export --to csv``: ``op``, ``kind``, ``name``,
        ``operator``, ``module``, ``phase``, ``origin``, ``thread``, ``stream``, ``host_start_us``, ``host_end_us``,
        ``device_start_us``, ``device_end_us`` (microseconds from the start), why its call began then
        and for which op it waited (``host_reason``, ``host_cause``), the same of its work (``device_reason``,
        ``device_cause``) and of the call's return (``return_reason``, ``return_cause``), ``bytes``, ``flops``, ``from``,
        ``to`` (tiers), ``storage``.

        >>> import memwall as mw
        >>> ops = mw.run(mw.Scenario(mw.Step.sample())).ops
        >>> {"kernel", "alloc"} <= set(ops["kind"])
        True
        """
        return Table(self._run.ops())

    @property
    def timeline(self) -> Table:
        """One row per call of a host thread and per piece of work of a stream: ``lane``, ``kind`` (``call``, ``work``),
        ``op``, ``name``, ``phase``, ``begin_s``, ``end_s`` (seconds from the start)."""
        return Table(self._run.timeline())

    @property
    def storages(self) -> Table:
        """One row per storage: ``storage``, ``bytes`` (as requested), ``kind``, ``label``, ``preexisting``."""
        return Table(self._run.storages())

    @property
    def residency(self) -> Table:
        """Where each storage was, and when, a row per stay: ``storage``, ``tier``, ``begin_s``, ``end_s`` (seconds from the
        start), ``bytes``, ``kind``, ``label``. Raises `Error` where nothing was recorded over time (``quick=True``)."""
        return Table(self._run.residency())

    def memory(self, tier: str = "hbm") -> Table:
        """The memory of a tier over time, each row valid until the next: ``time_s``, ``allocated_bytes``,
        ``requested_bytes``, ``reserved_bytes``. Raises `Error` for an unknown tier, and as `residency` does.

        >>> import memwall as mw
        >>> outcome = mw.run(mw.Scenario(mw.Step.sample()))
        >>> max(outcome.memory()["reserved_bytes"]) == outcome.peak_bytes
        True
        """
        return Table(self._run.memory(words.text("Outcome.memory(tier)", tier, "the name of a tier")))

    def link(self, name: str) -> Table:
        """What flows over a link, each row valid until the next: ``time_s``, ``bytes_per_s``. Raises as `memory` does.

        >>> import memwall as mw
        >>> outcome = mw.run(mw.Scenario(mw.Step.sample(), policies=["offload:what=activations"]))
        >>> 1e9 < max(outcome.link("pcie_d2h")["bytes_per_s"]) < 100e9
        True
        """
        return Table(self._run.link(words.text("Outcome.link(name)", name, "the name of a link")))

    def live(self, at: Union[str, float] = "peak", tier: str = "hbm") -> Table:
        """The storages that live in a tier, largest first: ``storage``, ``bytes``, ``kind``, ``label``, ``begin_s``,
        ``end_s`` (seconds from the start). ``at``: ``"peak"``, or seconds from the start (after all that changes in that
        instant). Raises as `memory` does.

        >>> import memwall as mw
        >>> outcome = mw.run(mw.Scenario(mw.Step.sample()))
        >>> sum(outcome.live()["bytes"]) == outcome["tiers.hbm.peak_requested_bytes"]
        True
        """
        words.text("Outcome.live(tier)", tier, "the name of a tier")
        if isinstance(at, str) and at != "peak":
            raise ValueError(f"Outcome.live(at): found {at!r}; expected 'peak' or seconds.")
        seconds = None if isinstance(at, str) else words.number("Outcome.live(at)", at, "'peak' or seconds")
        return Table(self._run.live(tier, seconds))

    # --- drawings and files

    def figure(
        self,
        view: str = "timeline",
        *,
        tier: str = "hbm",
        range: str = "",
        lanes: Sequence[str] = (),
        clock: str = "host",
        dark: bool = False,
    ) -> Figure:
        """The picture that ``memwall render --view`` makes: ``"timeline"``, ``"memory"``, ``"tiers"``, ``"links"``,
        ``"ranks"`` or ``"pipeline"``. ``range``: a part, ``"step:2"``, ``"12ms:15ms"``, ``"peak:2ms"``; ``lanes``: titles
        of lanes; ``clock``: ``"host"`` or ``"device"``, when the view ``memory`` counts bytes. Raises `Error` for an unknown
        view, tier, lane or range, and where nothing was recorded over time.

        >>> import memwall as mw
        >>> mw.run(mw.Step.sample()).figure("links", dark=True)  # doctest: +ELLIPSIS
        <memwall.Figure: ... bytes of SVG>
        """
        given = {"view": view, "tier": tier, "range": range, "clock": clock}
        texts = {name: words.text(f"Outcome.figure({name}=...)", value) for name, value in given.items()}
        titles = words.texts("Outcome.figure(lanes=...)", lanes, "titles of lanes")
        is_dark = words.truth("Outcome.figure(dark=...)", dark)
        return Figure(self._run.figure(texts["view"], texts["tier"], texts["range"], titles, texts["clock"], is_dark))

    def write(self, path: PathLike) -> None:
        """Writes the run file (``.h5``) that `read_run`, ``memwall view`` and ``memwall compare`` read. Raises `Error`
        where the place cannot be written, and for a run of ``quick=True``.

        >>> import memwall as mw
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "run.h5")
        ...     mw.run(mw.Step.sample()).write(path)
        ...     os.path.getsize(path) > 10000
        True
        """
        self._run.write(words.path("Outcome.write(path)", path))

    def _repr_html_(self) -> str:
        """The answer and the figures most asked for, for notebooks."""
        import html

        sentences = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.verdict)
        names = [name for name in ("step_time_s", "samples_per_s", "peak_reserved_bytes") if self.get(name)]
        return sentences + Table({name: [self[name]] for name in names})._repr_html_()

    def _verdict_word(self) -> str:
        return {True: "fits", False: "does not fit", None: "memory is not known"}[self.fits]

    def __repr__(self) -> str:
        words = [f"{self._run.trace} on {self._run.machine}", *self._run.policies]
        return f"<memwall.Outcome: {', '.join(words)}: {self._verdict_word()}, {self.step_time:.6g} s>"


def run(
    scenario: Union[Scenario, Step, PathLike], *, quick: bool = False, accept_gaps: bool = False
) -> Outcome:
    """Simulates a scenario.

    ``quick=True`` runs the one simulation of a point of ``memwall sweep``: nothing is kept over time (`Outcome.memory`,
    `Outcome.residency`, `Outcome.figure` and `Outcome.write` have nothing to show), and nothing beside the scenario is
    simulated. Otherwise all is done that ``memwall run`` does: comparison with the step without policies, what would make
    it fit, what would make it faster.

    Python's lock is released meanwhile; several threads may run scenarios of one `Step`, each result depends on its
    scenario alone. Ctrl-C stops a run, unless it is quick. ``accept_gaps`` takes captures whose gaps are beyond 5 %.

    Raises `Error` with the sentence that ``memwall run`` prints. A step that does not fit is no error.

    >>> import memwall as mw
    >>> mw.run(mw.Scenario(mw.Step.sample(), "h100-sxm-80gb"), quick=True)  # doctest: +ELLIPSIS
    <memwall.Outcome: gpt_124m on h100-sxm-80gb: fits, 0.0... s>
    """
    asked = _scenario("run", scenario)
    is_quick, accepts_gaps = words.truth("run(quick=...)", quick), words.truth("run(accept_gaps=...)", accept_gaps)
    return Outcome(asked.step._study.run(asked._words, is_quick, accepts_gaps))


def read_run(path: PathLike) -> Outcome:
    """Reads a run file, of ``memwall run -o`` or `Outcome.write`, as a whole. Raises `Error` where it is damaged or none.

    >>> import memwall as mw
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "run.h5")
    ...     mw.run(mw.Scenario(mw.Step.sample())).write(path)
    ...     mw.read_run(path).fits
    True
    """
    return Outcome(_memwall.read_run(words.path("read_run(path)", path)))
