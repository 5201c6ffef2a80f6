#!/usr/bin/env bash
# The demo: the same training with a slow input pipeline, then with it repaired, each observed.
# `./dev demo` starts it; it works wherever `stepscope` and torch are installed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
runs=${1:-stepscope-runs}

observe() {  # NAME TITLE ARGUMENTS...
  printf '\n--- %s\n' "$2"
  (set -x && stepscope run --name "$1" --run-dir "$runs/$1" --overwrite python "$here/train.py" "${@:3}")
}

observe demo-slow "1 of 2: a slow input pipeline" --slow
observe demo-repaired "2 of 2: the input pipeline repaired"
python "$here/compare.py" "$runs/demo-slow" "$runs/demo-repaired"
