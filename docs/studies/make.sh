#!/bin/sh
# Runs the studies of this folder anew, and draws their pictures beside them: docs/studies/make.sh [PROGRAM]
set -eu
cd "$(dirname "$0")/../.."
program=${1:-build/release/cli/memwall}
for study in docs/studies/*.study; do
  "$program" sweep "$study" --no-journal
  echo
done
