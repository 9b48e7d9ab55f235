"""Many scenarios at once."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _memwall, words
from .figure import Figure
from .own import require_kept
from .scenario import Scenario, _scenario
from .step import PathLike, Step
from .table import Table
from .workers import collect

Axes = Union[str, Sequence[str], Mapping[str, Any]]
Progress = Callable[[int, int, int], None]


def _axes(over: Axes) -> List[str]:
    """``{"policy": ["none", "checkpoint"], "batch": "1..64:log:7"}`` as the program takes it: ``NAME=a|b``."""
    where = "sweep(over=...)"
    if not isinstance(over, Mapping):
        return words.texts(where, over, 'axes as texts, as in "policy=none|checkpoint", or a mapping from names to values')
    axes = []
    for name, values in over.items():
        words.text(where, name, "names of axes as texts")
        if not isinstance(values, str):
            if not isinstance(values, Iterable):
                words.refuse(f"{where}, {name}", values, 'several values, or a text as in "1..64:log:7"')
            values = "|".join(words.setting(f"{where}, {name}", value) for value in values)
        axes.append(f"{name}={values}")
    return axes


class Sweep:
    """The points of a study, and which is best.

    >>> import memwall as mw
    >>> sweep = mw.sweep(mw.Step.sample(), over={"policy": ["none", "checkpoint"]}, objective="step_time")
    >>> len(sweep), sweep.best["policy"], sweep.best_scenario.line().startswith("step=")
    (2, 'none', True)
    """

    def __init__(self, sweep: "_memwall.Sweep", step: Optional[Step]):
        self._sweep = sweep
        self._step = step
        self._data: Optional[Dict[str, Any]] = None
        self._table: Optional[Table] = None

    def __len__(self) -> int:
        return len(self._sweep)

    def json(self) -> str:
        """The same bytes as ``memwall sweep --format json``. Raises nothing.

        >>> import memwall as mw
        >>> sweep = mw.sweep(mw.Step.sample(), over={"policy": ["none", "checkpoint"]}, objective="step_time")
        >>> import json
        >>> json.loads(sweep.json())["best"] == sweep.best["point"]
        True
        """
        return self._sweep.json()

    @property
    def data(self) -> Dict[str, Any]:
        """The JSON as Python's dictionaries and lists."""
        if self._data is None:
            self._data = json.loads(self.json())
        return self._data

    @property
    def table(self) -> Table:
        """One row per point, with the columns of ``memwall sweep --csv``: ``point``, the axes (texts, as typed; null
        where an axis does not apply), ``meets`` (ran, and all conditions hold), ``objective``, each field that any point
        has (numbers, units by their names), ``scenario`` (a line) and ``error`` (a sentence, of points that failed)."""
        if self._table is None:
            points = self.data["points"]
            columns: Dict[str, List[Any]] = {"point": [p["point"] for p in points]}
            for axis in self.data["axes"]:
                columns[axis] = [p["axes"][axis] for p in points]
            columns["meets"] = [p["meets"] for p in points]
            columns["objective"] = [p["objective"] for p in points]
            for field in self.data["fields"]:
                columns.setdefault(field["name"], [p["fields"].get(field["name"]) for p in points])
            columns["scenario"] = [p["scenario"] for p in points]
            columns["error"] = [p["error"] for p in points]
            self._table = Table(columns)
        return self._table

    @property
    def best(self) -> Optional[Dict[str, Any]]:
        """The row of the best point; ``None`` without an objective, or where no point meets the conditions."""
        at = self._sweep.best
        return None if at is None else next(iter(self.table.rows(at, at + 1)))

    @property
    def best_scenario(self) -> Optional[Scenario]:
        """The scenario of the best point, to be run."""
        at = self._sweep.best
        return None if at is None else self.scenarios[at]

    @property
    def scenarios(self) -> List[Scenario]:
        """The scenario of each point. Those of the sweep's own step share what was read of it."""
        scenarios = [Scenario(line) for line in self._sweep.scenarios()]
        for scenario in scenarios:
            if self._step is not None and scenario.step._words == self._step._words:
                scenario._step = self._step
        return scenarios

    @property
    def failures(self) -> List[Tuple[str, int]]:
        """Sentences of failed points, those that say the same together, and how many points each stands for."""
        return self._sweep.failures

    @property
    def kept(self) -> int:
        """How many points came from the journal."""
        return self._sweep.kept

    def figure(self, kind: str = "line", *, dark: bool = False) -> Figure:
        """The picture that ``memwall sweep --figure FILE=KIND`` makes: ``"line:x=pcie,y=step_time"``,
        ``"pareto:x=peak,y=step_time"``, ``"heatmap"``, ``"tornado"``, ``"budget"``. Raises `Error` for an unknown kind,
        axis or field.

        >>> import memwall as mw
        >>> sweep = mw.sweep(mw.Step.sample(), over={"pcie": "16..64GB/s:3"}, objective="step_time")
        >>> sweep.figure("line:x=pcie,y=step_time")  # doctest: +ELLIPSIS
        <memwall.Figure: ... bytes of SVG>
        """
        name = words.text("Sweep.figure(kind)", kind)
        return Figure(self._sweep.figure(name, words.truth("Sweep.figure(dark=...)", dark)))

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def __repr__(self) -> str:
        failed = sum(count for _, count in self.failures)
        return f"<memwall.Sweep: {len(self)} points over {', '.join(self.data['axes'])}, {failed} failed>"


def _points(
    of: str, jobs: int, journal: PathLike, accept_gaps: bool, written_out: bool, progress: Optional[Progress]
) -> Dict[str, Any]:
    words.function(f"{of}(progress=...)", progress, "a function of (done, of, failed), or None")
    return {
        "jobs": words.whole(f"{of}(jobs=...)", jobs),
        "journal": words.path(f"{of}(journal=...)", journal),
        "accept_gaps": words.truth(f"{of}(accept_gaps=...)", accept_gaps),
        "written_out": words.truth(f"{of}(written_out=...)", written_out),
    }


def sweep(
    scenario: Union[Scenario, Step, PathLike, None] = None,
    *,
    over: Axes = (),
    zip: Sequence[str] = (),
    sample: str = "",
    where: Union[str, Sequence[str]] = (),
    objective: str = "",
    show: Sequence[str] = (),
    study: PathLike = "",
    preset: str = "",
    jobs: int = 0,
    journal: PathLike = "",
    accept_gaps: bool = False,
    written_out: bool = False,
    progress: Optional[Progress] = None,
    client: Any = None,
) -> Sweep:
    """Runs a step at many points over axes (docs/sweep.md).

    ``over``: axes, ``{"policy": ["none", "checkpoint"], "pcie": "16..64GB/s:log:5"}`` or as ``--over`` takes them;
    ``zip``: axes that go together (``"batch,sequence"``); ``sample``: ``"random:200"`` or ``"latin:50:7"``; ``where``:
    conditions (``"fits"``, ``"step_time < 1s"``); ``objective``: ``"step_time"``, ``"max samples_per_s"``; ``show``:
    fields that the table should have besides. ``study``: a ``.study`` file, ``preset``: one that memwall comes with;
    what is given here goes on top of them.

    ``jobs``: threads (0: as many as the computer runs); the result is the same for any number. ``journal``: a file that
    keeps finished points, for the same question again and for ``memwall sweep --journal`` of this package; default:
    none. ``progress(done, of, failed)`` is called after each point, by one thread at a time. Python's lock is released
    meanwhile; Ctrl-C stops the sweep, and the journal has what was finished.

    ``written_out``: jobs over many GPUs are simulated operator by operator, as `run` does. Else their passes are folded,
    many times faster, where times, throughput and peaks alone are asked for (docs/sweep.md).

    ``client``: whose workers run the points, each with ``jobs`` threads (0: one): a ``dask.distributed.Client`` or any
    executor of ``concurrent.futures``. Workers need this package in the same version, and the folder in which the sweep
    is asked, with its files. What a worker that dies was computing is computed again by another, where the scheduler does
    that, as Dask's does; the answer is the same. ``progress`` then counts parts of several points as they come in.

    Raises `Error` for what is wrong with axes and conditions before a point runs. What a point throws is its own
    failure: `Sweep.failures`.

    >>> import memwall as mw
    >>> sweep = mw.sweep(mw.Step.sample(), over=["budget=4GiB|40GiB", "policy=none"], where="fits")
    >>> sweep.table["meets"]
    [False, True]
    """
    if client is not None and not callable(getattr(client, "submit", None)):
        words.refuse(
            "sweep(client=...)",
            client,
            "a dask.distributed.Client, or an executor of concurrent.futures: what has submit(function, *arguments)",
        )
    asked = None if scenario is None else _scenario("sweep", scenario)
    handle = asked.step._study if asked is not None else _memwall.Study()
    question = {
        "scenario": {} if asked is None else asked._words,
        "over": _axes(over),
        "zip": words.texts("sweep(zip=...)", zip),
        "sample": words.text("sweep(sample=...)", sample, 'a text, as in "random:200"'),
        "where": words.texts("sweep(where=...)", where),
        "objective": words.text("sweep(objective=...)", objective),
        "show": words.texts("sweep(show=...)", show),
        "file": words.path("sweep(study=...)", study),
        "preset": words.text("sweep(preset=...)", preset),
        **_points("sweep", jobs, journal, accept_gaps, written_out, progress),
    }
    require_kept(question)
    step_of_answer = None if asked is None else asked.step
    if client is None:
        return Sweep(handle.sweep(question, progress), step_of_answer)
    with tempfile.TemporaryDirectory() as folder:
        kept = question["journal"] or os.path.join(folder, "points.sqlite")
        collect(client, question, kept, handle.count_points(question), progress)
        return Sweep(handle.sweep({**question, "journal": kept}, None), step_of_answer)


class Fit:
    """The last value of an axis at which conditions hold.

    >>> import memwall as mw
    >>> fit = mw.fit(mw.Step.sample(), over="budget=4..40GiB:10", largest=False)
    >>> 4 << 30 < fit.number < 40 << 30, fit.data["monotone"]
    (True, True)
    """

    def __init__(self, fit: "_memwall.Fit"):
        self._fit = fit
        self._data: Optional[Dict[str, Any]] = None

    def json(self) -> str:
        """The same bytes as ``memwall fit --format json``. Raises nothing.

        >>> import memwall as mw
        >>> import json
        >>> fit = mw.fit(mw.Step.sample(), over="budget=4..40GiB:10", largest=False)
        >>> json.loads(fit.json())["number"] == fit.number
        True
        """
        return self._fit.json()

    @property
    def data(self) -> Dict[str, Any]:
        """The JSON as Python's dictionaries and lists."""
        if self._data is None:
            self._data = json.loads(self.json())
        return self._data

    @property
    def value(self) -> Optional[str]:
        """The value as it is typed, ``"48"`` or ``"24GiB"``; ``None``: the conditions hold nowhere on the axis."""
        return self._fit.value

    @property
    def number(self) -> Optional[float]:
        """The value as a number, in bytes, seconds or without a unit."""
        return self.data.get("number")

    @property
    def table(self) -> Table:
        """One row per value that was looked at: ``value`` (as typed), ``number`` (in bytes, seconds or without a unit),
        ``holds``, each field that was shown or asked for (units by their names), ``error`` (a sentence, or null)."""
        probes = self.data["probes"]
        names = {name: None for probe in probes for name in probe["fields"]}
        return Table(
            {
                "value": [probe["value"] for probe in probes],
                "number": [probe["number"] for probe in probes],
                "holds": [probe["holds"] for probe in probes],
                **{name: [probe["fields"].get(name) for probe in probes] for name in names},
                "error": [probe["error"] for probe in probes],
            }
        )

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def __repr__(self) -> str:
        return f"<memwall.Fit: {self.data['axis']}={self.value}>"


def fit(
    scenario: Union[Scenario, Step, PathLike],
    *,
    over: str = "batch=1..1024",
    where: Union[str, Sequence[str]] = "fits",
    largest: bool = True,
    show: Sequence[str] = (),
    jobs: int = 0,
    journal: PathLike = "",
    accept_gaps: bool = False,
    written_out: bool = False,
    progress: Optional[Progress] = None,
) -> Fit:
    """Finds the largest value (``largest=False``: the smallest) of one axis at which conditions hold.

    The words are those of `sweep`. Raises `Error` where no value runs, and for what is wrong with the axis or a condition.

    >>> import memwall as mw
    >>> mw.fit(mw.Scenario("gpt2-124m", "a100-sxm-40gb"), over="batch=1..64:log:7").value in ("16", "32", "64")
    True
    """
    asked = _scenario("fit", scenario)
    question = {
        "scenario": asked._words,
        "over": words.text("fit(over=...)", over, 'one axis as a text, as in "batch=1..1024"'),
        "where": words.texts("fit(where=...)", where),
        "largest": words.truth("fit(largest=...)", largest),
        "show": words.texts("fit(show=...)", show),
        **_points("fit", jobs, journal, accept_gaps, written_out, progress),
    }
    require_kept(question)
    return Fit(asked.step._study.fit(question, progress))
