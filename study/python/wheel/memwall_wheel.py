"""The build backend of pyproject.toml: scikit-build-core's wheel, with the shared libraries in it that machines lack.

What a wheel links beyond what manylinux takes for granted (libc, libstdc++, zlib) auditwheel copies into it, under names of
its own, so that neither packages of the system nor a compiler are needed where it is installed, and nothing clashes with
libraries that Python has loaded. An editable install stays on the libraries of the machine that built it.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

from scikit_build_core.build import (  # noqa: F401 (frontends call them)
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from scikit_build_core.build import build_wheel as _linked_wheel


def _repaired(wheel, folder):
    """Writes the wheel that stands by itself into ``folder``; returns its name."""
    words = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(folder), str(wheel)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    made = list(pathlib.Path(folder).glob("*.whl"))
    if done.returncode != 0 or len(made) != 1:
        raise RuntimeError(
            f"auditwheel ended with exit code {done.returncode}; expected it to copy shared libraries into "
            f"{wheel.name}. It said:\n{done.stdout}"
        )
    return made[0]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """As PEP 517 has it: the name of the wheel in ``wheel_directory``."""
    with tempfile.TemporaryDirectory() as linked, tempfile.TemporaryDirectory() as repaired:
        name = _linked_wheel(linked, config_settings, metadata_directory)
        whole = _repaired(pathlib.Path(linked) / name, repaired)
        shutil.move(str(whole), pathlib.Path(wheel_directory) / whole.name)
        return whole.name
