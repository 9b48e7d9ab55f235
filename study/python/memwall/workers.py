"""The points of a sweep on the workers of a scheduler that somebody else runs: Dask's, or an executor of Python."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import uuid
from typing import Any, Callable, Dict, List, Optional

from . import _memwall
from .errors import Error
from .own import functions

# Parts of a sweep: several for each worker, so that one that ends early takes another, and one that dies loses little.
_MOST_PARTS = 256

_COLUMNS = "key, scenario, has_all, error, cause, fields"


def run_part(words: Dict[str, Any], shard: str, question: str) -> bytes:
    """What a worker does: the points of one shard (``"0/8"``), as the file of a journal that holds them. ``question``
    makes a call of a later sweep another one, where a scheduler keeps results by their arguments."""
    del question
    with tempfile.TemporaryDirectory() as folder:
        journal = os.path.join(folder, "part.sqlite")
        _memwall.Study().sweep({**words, "shard": shard, "journal": journal, "jobs": max(1, words["jobs"])}, None)
        with open(journal, "rb") as file:
            return file.read()


def _found_anywhere(words: Dict[str, Any]) -> Dict[str, Any]:
    """Workers stand in other folders: names of files in full."""

    def full(name: Any) -> Any:
        if isinstance(name, list):
            return [full(one) for one in name]
        return os.path.abspath(name) if isinstance(name, str) and os.path.exists(name) else name

    scenario = dict(words["scenario"])
    for key in ("step", "execution_traces", "onto", "second_size", "plan", "machine", "measured_on"):
        if key in scenario:
            scenario[key] = full(scenario[key])
    return {**words, "scenario": scenario, "file": full(words["file"])}


def _take(journal: str, part: bytes) -> None:
    """Puts the points of a part into the journal; those that are there already are the same."""
    if not os.path.exists(journal):
        with open(journal, "wb") as file:
            file.write(part)
        return
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "part.sqlite")
        with open(name, "wb") as file:
            file.write(part)
        connection = sqlite3.connect(journal, timeout=60, isolation_level=None)
        try:
            connection.execute("ATTACH DATABASE ? AS part", (name,))
            connection.execute(f"INSERT OR REPLACE INTO point({_COLUMNS}) SELECT {_COLUMNS} FROM part.point")
        finally:
            connection.close()


def collect(
    client: Any,
    words: Dict[str, Any],
    journal: str,
    count: int,
    progress: Optional[Callable[[int, int, int], None]],
) -> None:
    """Has ``count`` points run by ``client`` (anything with ``submit(function, *arguments)`` that gives futures), and keeps
    them in ``journal`` as parts come in. Raises what a part raises: `Error` for what is wrong with the question."""
    asked = repr({key: words[key] for key in ("scenario", "over")})
    for name in functions:
        if name in asked:
            raise Error(f"{name} is a function of this process, which workers don't have; leave out client.")
    parts = min(count, _MOST_PARTS)
    asked_words, question = _found_anywhere(words), uuid.uuid4().hex
    futures: List[Any] = [client.submit(run_part, asked_words, f"{i}/{parts}", question) for i in range(parts)]
    done = 0
    try:
        for i, future in enumerate(futures):
            _take(journal, future.result())
            done += (count - i - 1) // parts + 1
            if progress is not None:
                progress(done, count, 0)
    except BaseException:
        for future in futures:
            future.cancel()
        raise
