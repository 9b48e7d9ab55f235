#!/bin/sh
# Runs a test of windows on a screen in memory, with real events of a display. Skipped (77) where there is no Xvfb.
if ! command -v xvfb-run >/dev/null 2>&1; then
  echo "Skipped: xvfb-run was not found (Debian: packages xvfb and xauth)."
  exit 77
fi
export QT_QPA_PLATFORM=xcb
exec xvfb-run -a -s "-screen 0 1600x1000x24" "$@"
