#!/usr/bin/env bash
# Beam search against joint descent on a dozen sentences, with the models that come with the
# package; where it has none, on a made-up language for which a small family is trained first
# (under two minutes on two cores).
#
# usage: examples/demo.sh [DIRECTORY]
set -euo pipefail
examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if python -c "import simplexity.shipped as s; raise SystemExit(not s.is_shipped())"; then
  python "$examples/compare.py" "$examples/sentences.de"
else
  echo "This package comes without models: a small family for a made-up language is trained."
  "$examples/toy.sh" "$@"
fi
