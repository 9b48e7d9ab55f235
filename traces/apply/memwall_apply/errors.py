class ApplyError(Exception):
    """A plan that cannot be carried out here; a sentence that says what was found and what was expected."""


class VerifyError(ApplyError):
    """A captured step is not the one that was planned. `differences`: a sentence each."""

    def __init__(self, differences):
        self.differences = list(differences)
        super().__init__("The captured step is not the planned one:\n  " + "\n  ".join(self.differences))
