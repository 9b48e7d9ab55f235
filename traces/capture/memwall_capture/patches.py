"""Attributes that have other values for a while."""

import contextlib


@contextlib.contextmanager
def patches():
    """Gives `patch(owner, name, value)`. What it has set is as before at the end, the last first."""
    with contextlib.ExitStack() as stack:
        def patch(owner, name, value):
            missing = object()
            old = owner.__dict__.get(name, missing) if isinstance(owner, type) else getattr(owner, name, missing)
            setattr(owner, name, value)
            stack.callback(delattr, owner, name) if old is missing else stack.callback(setattr, owner, name, old)

        yield patch
