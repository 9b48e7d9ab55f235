#!/bin/sh
# Is `pip install` all that the Python package needs? From nothing: a wheel built in an environment that has pip alone, into
# build/wheel-test; installed in another, where neither a compiler nor a library of .ci/packages is found; there
# docs/memwall.ipynb by Jupyter, and tests/python with the program that build/release holds.
#
# MEMWALL_WHEEL=FILE.whl: a wheel that is there already, instead of building one.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD place=$PWD/build/wheel-test program=$PWD/build/release/cli/memwall
python=$(command -v python3)
unset PYTHONPATH PYTHONHOME LD_LIBRARY_PATH LD_PRELOAD
rm -rf "$place"
mkdir -p "$place"

wheel=${MEMWALL_WHEEL:-}
if [ -z "$wheel" ]; then
  rm -rf build/wheel
  "$python" -m venv "$place/builder"
  "$place/builder/bin/pip" wheel --quiet . -w "$place/dist"
  wheel=$(ls "$place"/dist/memwall-*.whl)
fi
"$python" -m venv "$place/user"
"$place/user/bin/pip" install --quiet "$wheel"
[ "$("$place/user/bin/pip" list --format freeze | grep -cv -e '^pip=' -e '^setuptools=' -e '^wheel=')" -eq 1 ] ||
  { echo "the wheel brought other packages with it" >&2; exit 1; }

# No compiler, no program of the system but Python's own: the path has the environment alone.
cd "$place"
env -i HOME="$place" PATH="$place/user/bin" "$place/user/bin/python" "$root/tests/python/own_libraries.py" "$root"

"$place/user/bin/pip" install --quiet nbclient==0.11.0 ipykernel==7.4.0 mypy==2.4.1 \
  pyarrow==26.0.1 pandas==3.1.1 polars==2.1.0 h5py==3.16.0
env -i HOME="$place" PATH="$place/user/bin" "$place/user/bin/python" - "$root/docs/memwall.ipynb" <<'RUN'
import sys

import nbclient
import nbformat

notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
shown = [form for cell in notebook.cells for output in cell.get("outputs", []) for form in output.get("data", {})]
assert {"text/html", "image/svg+xml"} <= set(shown), shown
print(f"the notebook ran: {len(shown)} outputs")
RUN

cd "$root/tests/python"
for test in *_test.py; do
  PYTHONDONTWRITEBYTECODE=1 MEMWALL_PROGRAM="$program" "$place/user/bin/python" "$test"
done
