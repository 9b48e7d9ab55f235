"""What tests of the package share: the sample, and the program beside which results are held."""

import os
import pathlib
import subprocess

import memwall as mw

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = str(ROOT / "traces" / "samples" / "gpt_124m.mwt")


def program(*words, code=0):
    """What `memwall WORDS` prints on stdout, and on stderr; `code`: with which it has to end."""
    done = subprocess.run([os.environ["MEMWALL_PROGRAM"], *words], capture_output=True, text=True)
    assert done.returncode == code, f"memwall {' '.join(words)} ended with {done.returncode}:\n{done.stderr}"
    return done.stdout, done.stderr


def sentence(stderr):
    """The sentence of a refusal, without the name of the verb before it and the hint behind it."""
    line = stderr.splitlines()[0]
    return line.split(": ", 1)[1]


def refusal(test, ask):
    """The sentence by which `ask()` is refused."""
    with test.assertRaises(mw.Error) as caught:
        ask()
    return str(caught.exception)
