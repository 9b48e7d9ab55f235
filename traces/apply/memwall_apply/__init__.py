"""Carries out a memory plan of memwall.

    plan = memwall_apply.load("step.plan")                  # memwall run ... --plan-out step.plan --executable=torch
    memwall_apply.apply(model, plan, optimizer)             # before fully_shard, DistributedDataParallel and compile
    train()                                                 # as before
    memwall_apply.verify(plan, "step.mwc.gz")               # a capture of the step that now runs: is it as planned?
"""

from .applied import Applied, apply
from .errors import ApplyError, VerifyError
from .plan import Plan, load
from .profile import profile
from .verify import Verified, verify

__version__ = "0.1.0"
__all__ = ["Applied", "ApplyError", "Plan", "Verified", "VerifyError", "apply", "load", "profile", "verify", "__version__"]
