"""Memory snapshots of PyTorch."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Union

from . import _memwall
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
        words = {
            "device": device,
            "settings": settings,
            "allocator": allocator,
            "capacity": capacity,
            "machine": machine.name if isinstance(machine, Machine) else os.fspath(machine),
            "search": search,
        }
        self._snapshot = _memwall.Snapshot(os.fspath(file), words)
        self._data: Optional[Dict[str, Any]] = None

    def json(self) -> str:
        """The same bytes as ``memwall memory --format json``."""
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
        """The picture that ``memwall render --view`` makes of a snapshot: ``"memory"`` or ``"blocks"``."""
        return Figure(self._snapshot.figure(view, dark))

    def _repr_svg_(self) -> str:
        return self.figure().svg

    def __repr__(self) -> str:
        return f"<memwall.Snapshot: {len(self._snapshot.timeline())} events, {'fits' if self.fits else self.missing}>"
