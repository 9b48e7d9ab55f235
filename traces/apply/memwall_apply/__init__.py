"""Carries out a memory plan of memwall.

    plan = memwall_apply.load("step.plan")                  # memwall run ... --plan-out step.plan --executable=torch
    memwall_apply.apply(model, plan, optimizer)             # before fully_shard, DistributedDataParallel and compile
    train()                                                 # as before
"""

from .applied import Applied, apply
from .errors import ApplyError, VerifyError
from .plan import Plan, load
from .profile import profile

__version__ = "0.1.0"
__all__ = ["Applied", "ApplyError", "Plan", "VerifyError", "apply", "load", "profile", "__version__"]
