"""python -m memwall_apply verify PLAN CAPTURE: is the captured step the planned one? Exit code 0: yes; 1: no; 2: a file cannot be read."""

import argparse
import sys

from .errors import ApplyError, VerifyError
from .verification import verify


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m memwall_apply", description=__doc__.split(": ", 1)[1])
    parser.add_argument("what", choices=["verify"])
    parser.add_argument("plan", metavar="PLAN", help="as memwall run --plan-out writes it")
    parser.add_argument("capture", metavar="CAPTURE", help="of memwall_capture, of the model with the plan applied (.mwc.gz)")
    arguments = parser.parse_args(argv)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files and modules may have any character
    try:
        print(verify(arguments.plan, arguments.capture))
    except VerifyError as error:
        print(error)
        return 1
    except ApplyError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
