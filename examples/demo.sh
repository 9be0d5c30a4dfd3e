#!/usr/bin/env bash
# Train a small family (left-to-right, right-to-left, reverse) on a made-up language and translate
# with it, by the command line that users have. Takes under two minutes on two cores.
#
# usage: examples/demo.sh [DIRECTORY]
set -euo pipefail
here=${1:-runs/demo}
corpus=$here/corpus family=$here/family

python -c "
import sys
from pathlib import Path
from simplexity.text.toy import write_toy
write_toy(Path(sys.argv[1]))
" "$corpus"

simplexity train --train "$corpus/train" --dev "$corpus/dev" -s xa -t xb -o "$family" --overwrite \
  --directions l2r,r2l,reverse --jobs 2 --embedding 64 --hidden 96 --alignment 32 --cutoff 1 \
  --dropout 0.1 --learning-rate 0.008 --warmup 100 --average 0.98 --batch-tokens 512 --max-epochs 8

simplexity translate -m "$family" --beam-size 5 -i "$corpus/test.xa" -o "$here/test.l2r" --overwrite
simplexity translate -m "$family" --beam-size 5 --member r2l \
  -i "$corpus/test.xa" -o "$here/test.r2l" --overwrite
simplexity score -m "$family" -s "$corpus/test.xa" -t "$here/test.l2r" \
  -o "$here/test.l2r.scores" --overwrite
simplexity evaluate "$here/test.l2r" "$here/test.r2l" -r "$corpus/test.xb" -b "$here/test.l2r"

echo
echo "A few translations (source, ours, reference):"
paste -d '\n' "$corpus/test.xa" "$here/test.l2r" "$corpus/test.xb" /dev/null | sed -n '1,12p'
