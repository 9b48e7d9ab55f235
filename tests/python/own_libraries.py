"""Does an installed package use its own libraries, and of the system's none but what every Linux has? Run by
installed_wheel.sh: own_libraries.py FOLDER, the source tree, which nothing may be loaded from."""

import os
import pathlib
import shutil
import sqlite3  # noqa: F401 (what Python itself loads for the package counts as Python's)
import sys
import tempfile  # noqa: F401
import uuid  # noqa: F401

# What PEP 600's manylinux takes for granted, as far as it is needed here, and the dynamic linker.
OF_GLIBC = {"libc", "libm", "libdl", "librt", "libpthread", "libresolv", "ld-linux-x86-64"}
OF_EVERY_LINUX = OF_GLIBC | {"libgcc_s", "libstdc++", "libz"}


def mapped():
    """Shared libraries of this process."""
    with open("/proc/self/maps") as file:
        return {pathlib.Path(line.split(maxsplit=5)[5].strip()) for line in file if ".so" in line}


def use_all(mw):
    """Every kind of file that the package reads or writes: traces, machines, networks, run files, journals, plans."""
    outcome = mw.run(mw.Scenario(mw.Step.sample(), "h100-sxm-80gb", policies=["checkpoint"]))
    outcome.write("run.h5")
    assert mw.read_run("run.h5").step_time == outcome.step_time
    assert len(mw.sweep(mw.Step.sample(), over="policy=none|checkpoint", journal="points.sqlite")) == 2
    assert mw.run(mw.Scenario("gpt2-124m", "a100-sxm-40gb"), quick=True).fits
    assert mw.plan(mw.Step.sample(), smallest=False).fits
    assert outcome.figure("memory").svg.startswith("<?xml")


def main(source):
    assert shutil.which("cc") is None and shutil.which("c++") is None, "there is a compiler"
    before = mapped()
    import memwall as mw

    package = pathlib.Path(mw.__file__).resolve().parent
    assert package.is_relative_to(pathlib.Path(sys.prefix).resolve()), f"{package} is not what was installed"
    use_all(mw)
    own, foreign = [], []
    for path in sorted(mapped() - before):
        if path.parent in (package, package.parent / "memwall.libs"):
            own.append(path.name)
        elif path.name.split(".so")[0] not in OF_EVERY_LINUX and "lib-dynload" not in path.parts:
            foreign.append(str(path))
    assert not foreign, f"libraries of the system, which another machine may lack: {foreign}"
    assert any("hdf5" in name for name in own), own
    for module in ("machines", "workloads", "studies", "samples"):
        assert any((package / "share" / module).iterdir()), module
    assert str(source) not in mw.Step.sample().files[0], mw.Step.sample().files
    print(f"{len(own)} libraries of the package's own, none of the system's: {', '.join(own)}")


if __name__ == "__main__":
    main(os.path.join(pathlib.Path(sys.argv[1]).resolve(), "traces"))
