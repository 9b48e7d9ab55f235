"""Planners and pagers of one's own, in Python."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Protocol, TypeVar

from . import _memwall, words
from .errors import Error
from .table import Table

# By name; _memwall asks here whom to call.
functions: Dict[str, Callable[..., Any]] = {}
_kinds: Dict[str, str] = {}

F = TypeVar("F", bound=Callable[..., Any])


class PagerView(Protocol):
    """What a pager sees: the past and the present, never the future. It is of one call."""

    @property
    def now(self) -> float:
        """Seconds from the start, on the pager's clock."""

    def free_bytes(self, tier: str) -> int:
        """Bytes that a tier has left. Raises `Error` for an unknown tier, and once the call is over.

        >>> import memwall as mw
        >>> asked = []
        >>> @mw.pager
        ... class watches_the_host:
        ...     def make_room(self, tier, bytes, view):
        ...         asked.append(view.free_bytes("host"))
        ...         return [("evict", row[0], "host") for row in view.movable(bytes) if not row[3]]
        >>> _ = mw.run(mw.Scenario(mw.Step.sample(), budget="4GiB", pager="watches_the_host"), quick=True)
        >>> asked[0] > 1 << 30
        True
        """

    def movable(self, bytes: int = 0) -> "list[tuple[int, int, float, bool]]":
        """``(storage, bytes, last_use_s, clean)`` of storages in the GPU's memory that may leave, least recently used
        first, until ``bytes`` are together (0: all). ``clean``: a valid copy lies in a slower tier, so that dropping
        costs nothing; the engine keeps none, so that it is false today (docs/limits.md). Costs in proportion to what is
        returned. Raises `Error` once the call is over.

        >>> import memwall as mw
        >>> seen = []
        >>> @mw.pager
        ... class looks_first:
        ...     def make_room(self, tier, bytes, view):
        ...         seen.append((bytes, sum(size for _, size, _, _ in view.movable(bytes))))
        ...         return []
        >>> _ = mw.run(mw.Scenario(mw.Step.sample(), budget="4GiB", pager="looks_first"), quick=True)
        >>> needed, together = seen[0]
        >>> together >= needed > 0
        True
        """


def _add(name: str, kind: str, function: Callable[..., Any], register: Callable[[str, str], None]) -> None:
    if _kinds.get(name, kind) != kind:
        raise Error(f'"{name}" is the name of a {_kinds[name]} already; expected another.')
    sentence = (function.__doc__ or "").strip() or "decides what a function of Python decides"
    if name not in functions:
        register(name, sentence.splitlines()[0].rstrip("."))
    functions[name], _kinds[name] = function, kind


def planner(function: Optional[F] = None, *, name: str = "") -> Any:
    """Makes a Python function a planner of memory plans: a policy under the function's name (or ``name``).

    The function gets the step's profile as a dictionary, as a program of ``--policy exec:`` gets it
    (`policies/planners/PROFILE.md`: ops, storages, uses, gaps, links, ``budget`` in bytes), and returns a memory plan as
    a dictionary or JSON text (`traces/plan/FORMAT.md`). It is asked where the step does not keep to the budget as it is,
    again with less where its plan takes more with the real allocator, and maybe from several threads: for one profile
    it should always return the same plan. What it returns is checked; what cannot be carried out is an `Error`. What it
    raises is raised by whoever runs the scenario.

    Define it before anything runs; a function of the same name takes the place of the one before. Raises `Error` for a
    name that another policy has, or that is no policy's name, and `TypeError` for what is no function.

    >>> import bisect, itertools, memwall as mw
    >>> @mw.planner
    ... def long_rests(profile):
    ...     '''Sends to the host what rests for long enough to go and come back.'''
    ...     decisions = []
    ...     reached = list(itertools.accumulate((op["start_s"] for op in profile["ops"]), max))
    ...     for number, storage in enumerate(profile["storages"]):
    ...         for gap in storage["gaps"]:
    ...             leaves = bisect.bisect_left(reached, gap["begin_s"] + storage["bytes"] / 10e9)
    ...             returns = bisect.bisect_left(reached, gap["end_s"] - storage["bytes"] / 5e9)
    ...             if gap["needs_content"] and not gap["wraps"] and gap["after"] < leaves < returns - 100:
    ...                 decisions.append({"storage": number,
    ...                                   "copies": [{"op": gap["after"], "after": True, "to": "host"}],
    ...                                   "drops": [{"op": leaves, "after": False}],
    ...                                   "fetches": [{"op": returns, "after": False, "from": "host"}]})
    ...                 break
    ...     return {"format": "memwall-plan", "version": 1, "made_by": "long_rests", "trace": profile["trace"],
    ...             "tiers": [{"tier": "host"}], "decisions": decisions, "reruns": []}
    >>> outcome = mw.run(mw.Scenario(mw.Step.sample(), policies=["long_rests:budget=11GiB"]), quick=True)
    >>> outcome.fits, outcome.peak_bytes < mw.run(mw.Step.sample(), quick=True).peak_bytes
    (True, True)
    """
    words.function("planner(function)", function, "a function that takes a profile and returns a plan")
    words.text("planner(name=...)", name)
    if function is None:
        return lambda of: planner(of, name=name)
    _add(name or function.__name__, "planner", function, _memwall.add_planner)
    return function


def pager(of: Optional[F] = None, *, name: str = "") -> Any:
    """Makes a Python class a pager: what ``pager=`` of a `Scenario` names by the class's name (or ``name``).

    A pager decides online what leaves a full GPU; the interface is that of `sim/policy/pager.h`. Each run makes an object
    of the class without arguments. Its methods:

    - ``make_room(tier, bytes, view)``: ``bytes`` more are needed in ``tier``. Returns moves: ``("evict", storage, tier)``,
      or ``("drop", storage)`` of a clean one. Asked again until there is room; nothing returned means out of memory.
      ``view`` is a `PagerView`: ``view.now``, ``view.free_bytes(tier)``, ``view.movable(bytes)``.
    - ``plan(tiers, ops, storages, uses)``, may be absent: once, before the run, the only look at the future. Names of
      tiers, and `Table` objects, of ops: ``op``, ``kind``, ``name``, ``operator``, ``module``, ``phase``, ``duration_s``,
      ``bytes``, ``flops``; of storages: ``storage``, ``bytes``, ``kind``, ``label``, ``preexisting``; of uses: ``op``,
      ``storage``, ``writes``.
    - ``spill_order()``, may be absent: names of tiers for what does not fit at the start, in the order in which they
      fill.
    - ``clock``: ``"host"`` (over an allocator, the host waits) or ``"device"`` (faults at kernel start).

    Every answer is checked: what cannot be done is an `Error`. What a method raises is raised by whoever runs the
    scenario. Runs on several threads call objects of their own, one at a time, as Python's lock has it. Raises `Error` for
    a name that another policy has, or that is no policy's name, and `TypeError` for what is no class.

    >>> import memwall as mw
    >>> @mw.pager
    ... class oldest_first:
    ...     '''Evicts what was not used for longest.'''
    ...     def make_room(self, tier, bytes, view):
    ...         return [("drop", storage) if clean else ("evict", storage, "host")
    ...                 for storage, _, _, clean in view.movable(bytes)]
    >>> mine = mw.run(mw.Scenario(mw.Step.sample(), budget="4GiB", pager="oldest_first"), quick=True)
    >>> mine.step_time == mw.run(mw.Scenario(mw.Step.sample(), budget="4GiB", pager="lru"), quick=True).step_time
    True
    """
    words.function("pager(of)", of, "a class with make_room(tier, bytes, view)")
    words.text("pager(name=...)", name)
    if of is None:
        return lambda given: pager(given, name=name)
    own = of

    def made() -> _Pager:
        return _Pager(own())

    made.__doc__ = own.__doc__
    _add(name or own.__name__, "pager", made, _memwall.add_pager)
    return of


class _Pager:
    """What _memwall calls: the object, with tables in place of columns."""

    def __init__(self, own: Any):
        self._own = own
        for name in ("make_room", "spill_order", "clock"):
            if hasattr(own, name):
                setattr(self, name, getattr(own, name))
        if hasattr(own, "plan"):
            self.plan = lambda tiers, *columns: own.plan(tiers, *(Table(c) for c in columns))


def require_kept(words: Dict[str, Any]) -> None:
    """Raises `Error` where a journal would keep points that a function of Python decides: it may change."""
    if not words["journal"]:
        return
    import re

    for name in functions:
        if re.search(rf"\b{re.escape(name)}\b", repr({key: words[key] for key in ("scenario", "over")})):
            raise Error(
                f"A journal keeps points under what they are asked, and what {name} decides stands in Python, where it "
                "may change; leave out the journal."
            )
