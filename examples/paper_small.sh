#!/usr/bin/env bash
# The paper's tables and figures at toy scale: a made-up language, a small family, all items of
# `simplexity experiment`. Takes about a minute of one processor.
#
# usage: examples/paper_small.sh [DIRECTORY]
set -euo pipefail
here=${1:-runs/paper-small}
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python -c "
import sys
from pathlib import Path
from simplexity.text.toy import write_toy
write_toy(Path(sys.argv[1]), train=1500, dev=100, test=100)
" "$here/corpus"

simplexity experiment toy --corpus "$here/corpus" --output "$here"
cat "$here/results/results.md"
