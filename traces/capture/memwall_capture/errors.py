"""The error that says what cannot be captured."""


class CaptureError(RuntimeError):
    """What was asked cannot be captured; the sentence says why and what to do."""
