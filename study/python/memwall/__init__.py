"""memwall: how a GPU, its memories and its links execute one step of training.

    import memwall as mw

    outcome = mw.run(mw.Scenario("profile.json.gz", "h100-sxm-80gb", policies=["checkpoint:mode=full"]))
    outcome.step_time, outcome.peak_bytes

The names are those of the program ``memwall`` and of its JSON. docs/python.md is the first page.
"""

from . import _memwall
from .errors import Error
from .figure import Figure
from .machine import Machine, machines, policies, workloads
from .outcome import Outcome, read_run, run
from .own import PagerView, pager, planner
from .planning import Plan, plan
from .scenario import Scenario
from .snapshot import Snapshot
from .step import Step
from .points import Fit, Sweep, fit, sweep
from .table import Table

__version__: str = _memwall.version

__all__ = [
    "Error",
    "Figure",
    "Fit",
    "Machine",
    "Outcome",
    "PagerView",
    "Plan",
    "Scenario",
    "Snapshot",
    "Step",
    "Sweep",
    "Table",
    "fit",
    "machines",
    "pager",
    "plan",
    "planner",
    "policies",
    "read_run",
    "run",
    "sweep",
    "workloads",
]
