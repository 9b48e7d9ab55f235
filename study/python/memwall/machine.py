"""What a step runs on."""

from __future__ import annotations

import os
from typing import List, Sequence, Union

from . import _memwall, words
from .table import Table


class Machine:
    """A machine by its name (`machines` lists them) or its file, with numbers of it changed.

    ``name`` is that name or path, ``settings`` the changed numbers as texts, in order. A machine does not change: `set`
    makes another. Nothing is read until somebody asks.

    >>> import memwall as mw
    >>> mw.Machine("h100-sxm-80gb").set("pcie=gen4", "gpu.hbm.bandwidth=4TB/s")
    Machine('h100-sxm-80gb', 'pcie=gen4', 'gpu.hbm.bandwidth=4TB/s')
    """

    def __init__(self, name: Union[str, "os.PathLike[str]"], *settings: str):
        self.name = words.path("Machine(name)", name, "a machine's name or its file")
        self.settings: Sequence[str] = tuple(
            words.text("Machine(settings)", setting, 'texts, as in "pcie=gen4"') for setting in settings
        )

    def set(self, *settings: str) -> "Machine":
        """The machine with these numbers besides, as ``--set`` takes them: ``"gpu.hbm.bandwidth=4TB/s"``,
        ``"pcie=gen5"``, ``"nvlink=off"``. Raises `TypeError` for what is no text; a wrong name or unit is an `Error` of
        whoever asks first.

        >>> import memwall as mw
        >>> slow = mw.Machine("h100-sxm-80gb").set("gpu.hbm.bandwidth=2TB/s")
        >>> mw.run(mw.Scenario(mw.Step.sample(), slow)).step_time > mw.run(mw.Scenario(mw.Step.sample(), slow.name)).step_time
        True
        """
        return Machine(self.name, *self.settings, *settings)

    def numbers(self) -> Table:
        """Every number of the machine: ``path`` (what `set` names), ``value`` with its unit, ``source``.

        Raises `Error` for an unknown machine or setting.

        >>> import memwall as mw
        >>> numbers = mw.Machine("h100-sxm-80gb").numbers()
        >>> next(row["value"] for row in numbers.rows() if row["path"] == "gpu.hbm.bandwidth")
        '3.35 TB/s'
        """
        rows = _memwall.machine_numbers(self.name, list(self.settings))
        return Table({name: [row[i] for row in rows] for i, name in enumerate(("path", "value", "source"))})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and (self.name, self.settings) == (other.name, other.settings)

    def __hash__(self) -> int:
        return hash((self.name, self.settings))

    def __repr__(self) -> str:
        return f"Machine({', '.join(repr(word) for word in (self.name, *self.settings))})"


def machines() -> Table:
    """The machines that memwall comes with, or those of the folder that ``MEMWALL_MACHINES`` names: a row each with
    ``name`` and ``description``. Raises `Error` where that folder cannot be read; damaged files are left out.

    >>> import memwall as mw
    >>> "h100-sxm-80gb" in mw.machines()["name"]
    True
    """
    rows = _memwall.machines()
    return Table({"name": [row[0] for row in rows], "description": [row[1] for row in rows]})


def workloads() -> Table:
    """The networks of which memwall writes a step by their name, or those of the folder that ``MEMWALL_WORKLOADS`` names: a
    row each with ``name`` and ``description``. Raises `Error` where that folder cannot be read.

    >>> import memwall as mw
    >>> "gpt2-124m" in mw.workloads()["name"]
    True
    """
    rows = _memwall.workloads()
    return Table({"name": [row[0] for row in rows], "description": [row[1] for row in rows]})


def policies() -> Table:
    """The policies and pagers, those of `planner` and `pager` among them: a row each with ``name``, ``kind``, ``sentence``
    and ``parameters`` (joined by blanks). Raises nothing.

    >>> import memwall as mw
    >>> policies = mw.policies()
    >>> dict(zip(policies["name"], policies["kind"]))["lru"]
    'pager'
    """
    rows = _memwall.policies()
    names: List[str] = ["name", "kind", "sentence"]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return Table({**columns, "parameters": [" ".join(row[3]) for row in rows]})
