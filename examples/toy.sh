#!/usr/bin/env bash
# Train a small family (left-to-right, right-to-left, reverse) on a made-up language and translate
# with it, by the command line that users have. Takes under two minutes on two cores.
#
# usage: examples/toy.sh [DIRECTORY]
set -euo pipefail
here=${1:-runs/demo}
corpus=$here/corpus family=$here/family
examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

python -c "
import sys
from pathlib import Path
from simplexity.text.toy import write_toy
write_toy(Path(sys.argv[1]), train=1500)  # so few that the models make mistakes
" "$corpus"

simplexity train --train "$corpus/train" --dev "$corpus/dev" -s xa -t xb -o "$family" --overwrite \
  --directions l2r,r2l,reverse --jobs 2 --embedding 32 --hidden 64 --alignment 32 --cutoff 1 \
  --dropout 0.1 --learning-rate 0.007 --warmup 50 --average 0.9 --batch-tokens 512 --max-epochs 6

simplexity translate -m "$family" -i "$corpus/test.xa" -o "$here/beam" --overwrite
simplexity translate -m "$family" --decoder eg --objective joint \
  -i "$corpus/test.xa" -o "$here/joint" --overwrite
simplexity evaluate "$here/beam" "$here/joint" -r "$corpus/test.xb" -b "$here/beam"

echo
# A dozen sentences, those first that joint descent changed.
paste "$here/beam" "$here/joint" "$corpus/test.xa" | awk -F '\t' '$1 != $2 {print $3}' >"$here/dozen"
cat "$corpus/test.xa" >>"$here/dozen"
sed -i '13,$d' "$here/dozen"
python "$examples/compare.py" "$here/dozen" "$family"
