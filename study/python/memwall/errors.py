"""What can go wrong."""

from .words import text


class Error(Exception):
    """Whatever memwall refuses, with the sentence that the command line prints.

    ``str(error)`` names what was found and what was expected. ``error.cause`` says whose mistake it is:

    - ``"usage"``: a name, a number or a combination that makes no sense (exit code 2 of the program),
    - ``"input"``: a file that is damaged or of an unknown kind (6),
    - ``"infeasible"``: nothing can be made to fit (3).

    A step that does not fit is no error: `Outcome.fits` says so.

    >>> import memwall as mw
    >>> try:
    ...     mw.run(mw.Scenario(mw.Step.sample(), policies=["chekpoint"]))
    ... except mw.Error as error:
    ...     print(error.cause, "-", str(error).split(" Known")[0])
    usage - There is no policy 'chekpoint'. Did you mean 'checkpoint'?
    """

    def __init__(self, sentence: str, cause: str = "usage"):
        super().__init__(text("Error(sentence)", sentence), text("Error(cause)", cause))
        self.cause = cause

    def __str__(self) -> str:
        return str(self.args[0])
