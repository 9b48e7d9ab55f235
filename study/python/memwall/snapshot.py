"""Memory snapshots of PyTorch."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Union

from . import _memwall, words
from .figure import Figure
from .machine import Machine
from .step import PathLike
from .table import Table


class Snapshot:
    """A memory snapshot (``torch.cuda.memory._dump_snapshot``), replayed and explained (docs/memory.md).

    ``device``: number of the GPU; default: the one that reserved most. ``settings``: of ``PYTORCH_ALLOC_CONF``, under
    which the recorded calls are made again (``""``: the default ones; ``None``: as recorded). ``capacity``: ``"40GiB"``,
    or ``machine``, whose GPU's usable memory it is. ``search``: try other settings.

    Raises `Error` where the file is damaged or none, and for an unknown device, setting or machine.

    >>> import memwall as mw
    >>> import os, pickle, tempfile
    >>> events = [
    ...     {"action": "segment_alloc", "addr": 1 << 30, "size": 2 << 20, "stream": 0},
    ...     {"action": "alloc", "addr": 1 << 30, "size": 1 << 20, "stream": 0},
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "memory.pickle")
    ...     with open(path, "wb") as file:
    ...         pickle.dump({"segments": [], "device_traces": [events]}, file)
    ...     snapshot = mw.Snapshot(path)
    >>> snapshot.timeline["allocated_bytes"]
    [0, 1048576]
    """

    def __init__(
        self,
        file: PathLike,
        *,
        device: Optional[int] = None,
        settings: Optional[str] = None,
        allocator: str = "pytorch",
        capacity: str = "",
        machine: Union[str, Machine] = "",
        search: bool = False,
    ):
        def where(name: str) -> str:
            return f"Snapshot({name}=...)"

        if isinstance(machine, Machine):
            machine = machine.name
        question = {
            "device": None if device is None else words.whole(where("device"), device),
            "settings": None if settings is None else words.text(where("settings"), settings, "a text, or None"),
            "allocator": words.text(where("allocator"), allocator),
            "capacity": words.text(where("capacity"), capacity, 'a size as a text, as in "40GiB"'),
            "machine": words.path(where("machine"), machine, "a Machine, a machine's name or its file"),
            "search": words.truth(where("search"), search),
        }
        self._snapshot = _memwall.Snapshot(words.path("Snapshot(file)", file), question)
        self._data: Optional[Dict[str, Any]] = None

    def json(self) -> str:
        """The same bytes as ``memwall memory --format json``. Raises nothing.

        >>> import memwall as mw
        >>> import os, pickle, tempfile
        >>> events = [
        ...     {"action": "segment_alloc", "addr": 1 << 30, "size": 2 << 20, "stream": 0},
        ...     {"action": "alloc", "addr": 1 << 30, "size": 1 << 20, "stream": 0},
        ... ]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "memory.pickle")
        ...     with open(path, "wb") as file:
        ...         pickle.dump({"segments": [], "device_traces": [events]}, file)
        ...     snapshot = mw.Snapshot(path)
        >>> snapshot.json().startswith("{")
        True
        """
        return self._snapshot.json()

    @property
    def data(self) -> Dict[str, Any]:
        """The JSON as Python's dictionaries and lists."""
        if self._data is None:
            self._data = json.loads(self.json())
        return self._data

    @property
    def fits(self) -> bool:
        """Does it fit in the capacity that was asked for or recorded?"""
        return not self.missing

    @property
    def missing(self) -> str:
        """What does not fit and by how much, as a sentence without a subject; ``""``: everything fits."""
        return self._snapshot.missing

    @property
    def timeline(self) -> Table:
        """One row per event, with the columns of ``memwall memory --timeline``: ``event``, ``time_us``, ``action``,
        ``size_bytes``, ``phase``, and the bytes after it: ``allocated_bytes``, ``reserved_bytes``, ``active_bytes``,
        ``requested_bytes``."""
        return Table(self._snapshot.timeline())

    def figure(self, view: str = "memory", *, dark: bool = False) -> Figure:
        """The picture that ``memwall render --view`` makes of a snapshot: ``"memory"`` or ``"blocks"``. Raises `Error` for
        an unknown view.

        >>> import memwall as mw
        >>> import os, pickle, tempfile
        >>> events = [
        ...     {"action": "segment_alloc", "addr": 1 << 30, "size": 2 << 20, "stream": 0},
        ...     {"action": "alloc", "addr": 1 << 30, "size": 1 << 20, "stream": 0},
        ... ]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "memory.pickle")
        ...     with open(path, "wb") as file:
        ...         pickle.dump({"segments": [], "device_traces": [events]}, file)
        ...     snapshot = mw.Snapshot(path)
        >>> snapshot.figure("blocks")  # doctest: +ELLIPSIS
        <memwall.Figure: ... bytes of SVG>
        """
        name = words.text("Snapshot.figure(view)", view)
        return Figure(self._snapshot.figure(name, words.truth("Snapshot.figure(dark=...)", dark)))

    def _repr_svg_(self) -> str:
        return self.figure().svg

    def __repr__(self) -> str:
        return f"<memwall.Snapshot: {len(self._snapshot.timeline())} events, {'fits' if self.fits else self.missing}>"
