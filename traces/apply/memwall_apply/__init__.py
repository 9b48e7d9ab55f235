"""Carries out a memory plan of memwall in PyTorch, and checks that what runs is what was planned.

    memwall_apply.record("step.mwc.gz", build)                               # a step of your program, without a GPU
    plan = memwall_apply.plan("step.mwc.gz", "rotor:budget=20GB", machine="a100-sxm-40gb")
    memwall_apply.apply(model, plan, optimizer)         # before fully_shard, DistributedDataParallel and compile
    memwall_apply.verify(plan, "planned.mwc.gz")        # a step recorded with the plan: is it as planned?
"""

from .applied import Applied, apply
from .errors import ApplyError, VerifyError
from .memory_plan import Plan, load
from .planning import plan, record
from .profiling import profile
from .verification import Verified, verify

__version__ = "0.1.0"
__all__ = ["Applied", "ApplyError", "Plan", "Verified", "VerifyError", "apply", "load", "plan", "profile", "record", "verify",
           "__version__"]
