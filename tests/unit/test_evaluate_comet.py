"""COMET through files, with a script that stands for `comet-score`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from simplexity.errors import SimplexityError
from simplexity.evaluate.comet import read_comet_scores, run_comet, write_comet_inputs

SCRIPT = """#!{python}
import json, pathlib, sys
flags = sys.argv[1:]
if flags[flags.index("--model") + 1] == "broken":
    sys.exit("first line\\nno such model")
files = flags[flags.index("-t") + 1 : flags.index("--model")]
reference = pathlib.Path(flags[flags.index("-r") + 1]).read_text().splitlines()
source = pathlib.Path(flags[flags.index("-s") + 1]).read_text().splitlines()
out = {{}}
for file in files:
    lines = pathlib.Path(file).read_text().splitlines()
    assert len(lines) == len(reference) == len(source)
    out[f"./{{file}}"] = [
        {{"mt": h, "COMET": float(h == r)}} for h, r in zip(lines, reference)
    ]
pathlib.Path(flags[flags.index("--to_json") + 1]).write_text(json.dumps(out))
"""


@pytest.fixture
def executable(tmp_path):
    path = tmp_path / "comet-score"
    path.write_text(SCRIPT.format(python=sys.executable))
    path.chmod(0o755)
    return str(path)


def test_scores_come_back_by_system_and_line(executable, tmp_path):
    systems = {"beam/5": ["x", "b", ""], "eg": ["a", "b\nc", "y"]}
    scores = run_comet(
        executable, "some-model", tmp_path / "run", ["1", "2", "3"], systems, ["a", "b c", ""]
    )
    assert scores == {"beam/5": [0, 0, 1], "eg": [1, 1, 0]}


def test_files_are_written_for_running_by_hand(tmp_path):
    arguments = write_comet_inputs(tmp_path / "in", ["s"], {"one": ["h"], "two": ["g"]}, ["r"])
    assert " ".join(arguments) == "-s source.txt -r reference.txt -t system-1.txt system-2.txt"
    held = {path.name: path.read_text() for path in Path(tmp_path / "in").iterdir()}
    assert held == {
        "source.txt": "s\n",
        "reference.txt": "r\n",
        "system-1.txt": "h\n",
        "system-2.txt": "g\n",
    }


def test_failures_are_told_in_one_sentence(executable, tmp_path):
    inputs = (tmp_path / "run", ["s"], {"one": ["h"]}, ["r"])
    with pytest.raises(SimplexityError, match="failed with exit code 1: no such model"):
        run_comet(executable, "broken", *inputs)
    with pytest.raises(SimplexityError, match="give the full path of comet-score"):
        run_comet(str(tmp_path / "nowhere"), "some-model", *inputs)
    with pytest.raises(SimplexityError, match="system 'one' has 2 lines and the source has 1 line"):
        run_comet(executable, "some-model", tmp_path, ["s"], {"one": ["h", "i"]}, ["r"])


@pytest.mark.parametrize("text", ["", "[]", '{"a": [{"score": 1}]}', '{"a": 3}', "{"])
def test_other_files_hold_no_scores(tmp_path, text):
    path = tmp_path / "scores.json"
    path.write_text(text)
    with pytest.raises(SimplexityError, match=r"scores\.json holds no COMET scores"):
        read_comet_scores(path)


def test_scores_are_read_in_full_precision(tmp_path):
    path = tmp_path / "scores.json"
    path.write_text(json.dumps({"in/hyp.txt": [{"COMET": 0.123456789}, {"COMET": -1}]}))
    assert read_comet_scores(path) == {"hyp.txt": [0.123456789, -1.0]}
