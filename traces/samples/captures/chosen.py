"""The command line that the scripts which make captures share."""

import argparse
import os


def chosen(description, known, folder):
    """(name, path) of each capture that the command line names; all of `known` where it names none."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; all if absent")
    parser.add_argument("--out", default=folder, help="folder to write to; the one of this script if absent")
    arguments = parser.parse_args()
    for name in arguments.names or known:
        if name not in known:
            parser.error(f"there is no capture {name!r}; expected one of {', '.join(known)}")
        yield name, os.path.join(arguments.out, name + ".mwc.gz")
