#!/usr/bin/env bash
# Train the family that comes with the package, store it in 8 bits, measure it, write its card.
# It ends in DIRECTORY/packed; copied to src/simplexity/shipped/de-en it is what `simplexity
# translate` uses when no model is named. Takes some hours on two cores; killed and started again,
# it goes on where it was.
#
# usage: examples/shipped.sh CORPUS [DIRECTORY [OPTIONS OF TRAIN...]]
#   CORPUS holds train, dev and test as train.de, train.en, ... (or .gz, .xz).
set -euo pipefail
cards=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
corpus=$1 here=${2:-runs/shipped} x=${SOURCE:-de} y=${TARGET:-en}
shift $(($# < 2 ? $# : 2))

simplexity train --train "$corpus/train" --dev "$corpus/dev" -s "$x" -t "$y" -o "$here/family" \
  --directions l2r,r2l,reverse --jobs 2 --vocabulary bpe --vocabulary-size 5000 \
  --embedding 256 --hidden 256 --alignment 256 --tie-embeddings --dropout 0.2 \
  --learning-rate 0.0015 --batch-tokens 3072 --max-epochs 24 "$@"
simplexity pack "$here/family" -o "$here/packed" --overwrite

# The text of a file of the corpus, whatever it is packed with.
text() {
  python -c "
import sys
from pathlib import Path
from simplexity.text.corpora import Bitext
for pair in Bitext.at(Path(sys.argv[1]), *sys.argv[2:4]):
    print(pair[sys.argv[4] == sys.argv[3]])
" "$corpus/$1" "$x" "$y" "$2"
}

for part in ${PARTS:-test dev}; do
  mkdir -p "$here/$part"
  text "$part" "$x" >"$here/$part/source"
  text "$part" "$y" >"$here/$part/reference"

  go() { # name, options of translate
    local name=$1
    shift
    simplexity translate --quiet -i "$here/$part/source" -o "$here/$part/$name" --overwrite "$@"
  }
  go beam-5 -m "$here/packed"
  go rerank-joint -m "$here/packed" --decoder rerank --objective joint --beam-size 50
  go eg-bidirectional -m "$here/packed" --decoder eg --objective bidirectional
  go eg-bilingual -m "$here/packed" --decoder eg --objective bilingual
  go eg-joint -m "$here/packed" --decoder eg --objective joint
  go eg-joint-from-rerank -m "$here/packed" --decoder eg --objective joint --init rerank \
    --beam-size 50
  go edits-joint -m "$here/packed" --decoder edits --objective joint
  go beam-5-unpacked -m "$here/family"
  go eg-joint-unpacked -m "$here/family" --decoder eg --objective joint
  (
    cd "$here/$part"
    simplexity evaluate beam-5 rerank-joint eg-bidirectional eg-bilingual eg-joint \
      eg-joint-from-rerank edits-joint beam-5-unpacked eg-joint-unpacked \
      -r reference -b beam-5 --format markdown -o table.md --overwrite
  )
done

python - "$cards/model_card.md" "$here" ${PARTS:-test dev} <<'PYTHON'
import sys
from pathlib import Path

card, here = Path(sys.argv[1]).read_text(encoding="utf-8"), Path(sys.argv[2])
for part in sys.argv[3:]:
    table = (here / part / "table.md").read_text(encoding="utf-8").strip()
    card = card.replace(f"@{part.upper()}@", table)
(here / "packed" / "README.md").write_text(card, encoding="utf-8")
PYTHON
echo "Done: $here/packed. To ship it: cp -r $here/packed src/simplexity/shipped/de-en" >&2
