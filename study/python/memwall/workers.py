"""The points of a sweep on the workers of a scheduler that somebody else runs: Dask's, or an executor of Python."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from typing import Any, Callable, Dict, Iterator, List, Optional

from . import _memwall
from .errors import Error
from .own import functions

# Parts of a sweep: several for each worker, so that one that ends early takes another, and one that dies loses little.
_MOST_PARTS = 256

_COLUMNS = "key, scenario, has_all, error, cause, fields"


def run_part(words: Dict[str, Any], shard: str, question: str, folder: str, kept: bytes = b"") -> bytes:
    """What a worker does: the points of one shard (``"0/8"``), as the file of a journal that holds them, beside those that
    ``kept`` holds, which do not run again. Names of files are those of ``folder``, in which the sweep was asked.
    ``question`` makes a call of a later sweep another one, where a scheduler keeps results by their arguments."""
    if not os.path.isdir(folder):
        raise Error(f"{folder}: a worker has no such folder; expected the folder that the sweep is asked in on every worker.")
    if os.path.realpath(folder) == os.path.realpath(os.getcwd()):
        return _points_of(words, shard, kept)
    # A worker that stands elsewhere may run parts in several threads, which have one folder in common.
    command = [sys.executable, "-c", "from memwall.workers import answer_parent; answer_parent()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    asked = pickle.dumps((words, shard, kept))
    process = subprocess.run(command, input=asked, stdout=subprocess.PIPE, cwd=folder, env=environment, check=True)
    part, error = pickle.loads(process.stdout)
    if error is not None:
        raise error
    return part


def answer_parent() -> None:
    """The process of one part: the question on its standard input, the answer on its standard output."""
    words, shard, kept = pickle.loads(sys.stdin.buffer.read())
    try:
        answer = (_points_of(words, shard, kept), None)
    except Exception as error:  # raised again in the worker
        answer = (None, error)
    sys.stdout.buffer.write(pickle.dumps(answer))


def _points_of(words: Dict[str, Any], shard: str, kept: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        journal = os.path.join(folder, "part.sqlite")
        if kept:
            with open(journal, "wb") as file:
                file.write(kept)
        _memwall.Study().sweep({**words, "shard": shard, "journal": journal, "jobs": max(1, words["jobs"])}, None)
        with open(journal, "rb") as file:
            return file.read()


def _take(journal: str, part: bytes) -> int:
    """Puts the points of a part into the journal; those that are there already are the same. Gives how many points of
    the journal failed."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "part.sqlite")
        with open(name, "wb") as file:
            file.write(part)
        if not os.path.exists(journal):
            shutil.copyfile(name, journal)
        connection = sqlite3.connect(journal, timeout=60, isolation_level=None)
        try:
            connection.execute("ATTACH DATABASE ? AS part", (name,))
            connection.execute(f"INSERT OR REPLACE INTO point({_COLUMNS}) SELECT {_COLUMNS} FROM part.point")
            return int(connection.execute("SELECT count(*) FROM point WHERE error <> ''").fetchone()[0])
        finally:
            connection.close()


def _as_they_end(futures: List[Any]) -> Iterator[Any]:
    """Whichever ends first: what is done is kept, whatever an earlier part waits for."""
    left = list(futures)
    while left:
        ended = [future for future in left if future.done()]
        yield from ended
        left = [future for future in left if future not in ended]
        if not ended:
            time.sleep(0.02)


def _kept_points(journal: str) -> bytes:
    if not os.path.exists(journal):
        return b""
    with open(journal, "rb") as file:
        return file.read()


def collect(
    client: Any,
    words: Dict[str, Any],
    journal: str,
    count: int,
    progress: Optional[Callable[[int, int, int], None]],
) -> None:
    """Has ``count`` points run by ``client`` (anything with ``submit(function, *arguments)`` that gives futures), and keeps
    them in ``journal`` as parts come in. Raises what a part raises: `Error` for what is wrong with the question."""
    asked = repr([list(words["scenario"].values()), words["over"]])
    for name in functions:
        if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", asked):
            raise Error(f"{name} is a function of this process, which workers don't have; leave out client.")
    parts = min(count, _MOST_PARTS)
    question, folder, kept = uuid.uuid4().hex, os.getcwd(), _kept_points(journal)
    futures: List[Any] = [
        client.submit(run_part, words, f"{i}/{parts}", question, folder, kept) for i in range(parts)
    ]
    sizes = {id(future): (count - i - 1) // parts + 1 for i, future in enumerate(futures)}
    done, wrong = 0, None
    try:
        for future in _as_they_end(futures):
            try:
                part = future.result()
            except Exception as error:  # the others that are done are kept, what has not begun is left
                wrong = wrong or error
                for other in futures:
                    other.cancel()
                continue
            failed = _take(journal, part)
            done += sizes[id(future)]
            if progress is not None:
                progress(done, count, failed)
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    if wrong is not None:
        raise wrong
