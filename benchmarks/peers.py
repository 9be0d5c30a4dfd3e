"""Our models and their peers side by side: the same data, sizes and threads, one interleaved run.

    python benchmarks/peers.py FAMILY CORPUS -s de -t en --work WORK --output NAME

FAMILY is what `simplexity train` wrote; CORPUS is a folder with train, dev and test of both
languages. Marian's data and model live in WORK. NAME.json (all figures) and NAME.md (tables)
are written after every step; steps that are not run keep their figures. The steps (`--steps`):

train     train Marian's attentional model (`--type s2s`) with the sizes and the recipe of the
          family's left-to-right model, for --epochs or for --minutes or until its own early
          stopping. --resume goes on where WORK stands. marian.py says what is the same, what not.
speed     target words a second in training. New models, `--updates` updates each, by turns,
          `--rounds` times: Marian, and ours in float32 and in bfloat16. The first fifth of each
          turn is not counted; nor are validations and checkpoints.
beam      beam search with Marian's best model and with ours, by turns on the whole test set:
          sentences a second, and lower-cased BLEU. Marian gets and gives tokens; ours gets and
          gives text, so that cutting and joining count against it.
generate  (with --transformer MEMBER) our beam search and transformers' `generate`, on the same
          weights and the same batches by turns: sentences a second, share of equal strings, and
          which has the better score, log P / (words + 1), where they differ.

Speeds are medians of the rounds, by the clock and by processor time; the second is the one to
trust on a machine that others use too. Load averages are in NAME.json. Processor time of Marian's
training is read from /proc, so Linux is needed.
"""

from __future__ import annotations

import argparse
import json
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import generate
import marian
import torch
import yaml
from report import render

from simplexity import build
from simplexity.api import Loaded
from simplexity.bench import marian as beside
from simplexity.bench import setting
from simplexity.bench.turns import NONE, Timing, by_turns, timed
from simplexity.config import TrainConfig
from simplexity.evaluate.metrics import from_sufficient, metric_named, signature, sufficient
from simplexity.evaluate.significance import approximate_randomisation
from simplexity.models.family import load_family
from simplexity.runtime import keep_memory, quiet_transformers, use_threads
from simplexity.text.corpora import Bitext
from simplexity.train.distributed import join_workers
from simplexity.train.family import Material, prepare
from simplexity.train.trainer import Run, Update

STEPS = ("train", "speed", "beam", "generate")


def main() -> None:
    given = arguments()
    keep_memory()
    use_threads(given.threads)
    quiet_transformers()
    path = given.output.with_suffix(".json")
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    config = settings(given)
    material = prepare(config)
    marian.write_data(material, given.work)
    for step in given.steps:
        print(f"--- {step}", flush=True)
        match step:
            case "train":
                train(given, config, material)
            case "speed":
                content[step] = measure_training(given, config, material)
            case "beam":
                content[step] = measure_beam(given, material)
            case "generate":
                lines = [x for x, _ in test_pairs(given)]
                options = (given.beam, given.batch_size, given.rounds)
                content[step] = generate.measure(given.transformer, lines, *options)
        content.setdefault("machine", {})[step] = machine(given)
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        given.output.with_suffix(".md").write_text(render(content), encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("family", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("-s", "--source", required=True, help="code of the source language")
    parser.add_argument("-t", "--target", required=True, help="code of the target language")
    parser.add_argument(
        "--work", type=Path, required=True, help="folder of Marian's data and model"
    )
    parser.add_argument("--output", type=Path, required=True, help="results, without suffix")
    parser.add_argument("--steps", type=lambda text: text.split(","), help=",".join(STEPS))
    parser.add_argument("--transformer", type=Path, help="directory of a Transformer, for generate")
    parser.add_argument("--epochs", type=int, help="most epochs of Marian, in all")
    parser.add_argument("--minutes", type=float, help="most minutes of Marian, of this call")
    parser.add_argument("--resume", action="store_true", help="go on training Marian in --work")
    parser.add_argument(
        "--marian-flags",
        type=shlex.split,
        default=[],
        help="flags that replace ours: --marian-flags='--dropout-rnn 0.2'",
    )
    parser.add_argument("--updates", type=int, default=30, help="updates in a turn of speed")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each system")
    parser.add_argument("--limit", type=int, help="so many test sentences only")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64, help="sentences decoded at a time")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if given.steps is None:
        given.steps = [s for s in STEPS if s != "generate" or given.transformer]
    if unknown := set(given.steps) - set(STEPS):
        parser.error(f"there is no step {unknown.pop()}; choose from {', '.join(STEPS)}")
    if "generate" in given.steps and given.transformer is None:
        parser.error("the step generate needs --transformer DIRECTORY")
    return given


def machine(given: argparse.Namespace) -> dict[str, Any]:
    """With what, where and how a step was run."""
    options = {key: str(value) for key, value in vars(given).items()}
    return {**setting.machine(), "settings": options}


def test_pairs(given: argparse.Namespace) -> list[tuple[str, str]]:
    """The test set, or as much of it as was asked for."""
    return list(Bitext.at(given.corpus / "test", given.source, given.target))[: given.limit]


def settings(given: argparse.Namespace) -> TrainConfig:
    """What the family was trained with, on the corpus that was named."""
    written = yaml.safe_load((given.family / "training.yaml").read_text(encoding="utf-8"))
    fields = {"train": given.corpus / "train", "dev": given.corpus / "dev"}
    languages = {"source_language": given.source, "target_language": given.target}
    config = TrainConfig(**{**written, **fields, **languages, "output": given.family})
    return config.resolved()


def our_updates(config: TrainConfig, material: Material, updates: int) -> Timing:
    """Train a new model for so many updates; target words, those of the first fifth left out."""
    network = build.new_network(config, len(material.source), len(material.target))
    recipe = replace(
        build.recipe(config),
        max_epochs=updates + 1,
        validate_every=10 * updates,
        checkpoint_every=10 * updates,
    )
    with tempfile.TemporaryDirectory() as folder:
        run = Run(network, material.train, material.dev, recipe, Path(folder), join_workers())
        events = run.events()
        total = NONE
        for number in range(updates):
            timing, event = timed(0, partial(next, events))
            assert isinstance(event, Update)
            if number >= updates // 5:
                total += replace(timing, amount=event.words)
    return total


def their_updates(flags: dict[str, Any], given: argparse.Namespace) -> Timing:
    """The same by Marian, in a folder of its own."""
    stretch = max(given.updates // 5, 1)
    with tempfile.TemporaryDirectory() as folder:
        run = {"model": f"{folder}/model.npz", "after": f"{given.updates}u"}
        flags = {**flags, **run, "disp-freq": f"{stretch}u"}
        timings = marian.timed_updates(marian.command(flags, given.marian_flags))
        return sum(timings, NONE)


def train(given: argparse.Namespace, config: TrainConfig, material: Material) -> None:
    """Train Marian in the work folder."""
    model = given.work / "model.npz"
    if model.exists() and not given.resume:
        raise SystemExit(f"{model} exists; pass --resume to go on with it, or another --work")
    words, batches = marian.batch_words(config, material)
    flags = {
        **marian.model_flags(config, given.work, given.threads),
        **marian.training_flags(config, words),
        **marian.validation_flags(given.work, batches),
        "model": model,
        "after": f"{given.epochs or 0}e",
    }
    marian.train(marian.command(flags, given.marian_flags), given.work, given.minutes)


def measure_training(
    given: argparse.Namespace, config: TrainConfig, material: Material
) -> dict[str, Any]:
    """Training speed of both."""
    words, batches = marian.batch_words(config, material)
    flags = marian.model_flags(config, given.work, given.threads)
    flags |= marian.training_flags(config, words)
    systems: dict[str, Callable[[], Timing]] = {"Marian": lambda: their_updates(flags, given)}
    for precision in ("fp32", "bf16"):
        mine = config.model_copy(update={"precision": precision})
        systems[f"ours, {precision}"] = partial(our_updates, mine, material, given.updates)
    found = by_turns(given.rounds, systems)
    epoch = sum(len(y) + 1 for y in material.train.target)
    return {
        "systems": found,
        "epoch_words": epoch,
        "epoch_updates": batches,
        "updates": given.updates,
    }


def measure_beam(given: argparse.Namespace, material: Material) -> dict[str, Any]:
    """Quality and speed of beam search with both trained models."""
    pairs = test_pairs(given)
    lines, references = [x for x, _ in pairs], [[y for _, y in pairs]]
    loaded = Loaded(load_family(given.family, ("l2r",)))
    record = marian.training_record(given.work)
    translator = beside.translator(given.work, given.threads, given.beam, given.batch_size)
    cut = [beside.segment(material.source, material.source.encode(line)) for line in lines]
    options = {"decoder": "beam", "beam_size": given.beam, "batch_size": given.batch_size}
    decoders: dict[str, Callable[[], list[str]]] = {
        "Marian": lambda: translator.translate(cut),
        "ours": lambda: [found.text for found in loaded.translate(lines, **options)],
    }
    texts = {name: decode() for name, decode in decoders.items()}  # warms up, too
    texts["Marian"] = beside.join(material.target, texts["Marian"])

    def turn(decode: Callable[[], list[str]]) -> Timing:
        return timed(len(lines), decode)[0]

    systems = by_turns(given.rounds, {name: partial(turn, d) for name, d in decoders.items()})
    systems["Marian"]["training"] = record
    systems["ours"]["training"] = our_training(given.family, loaded)
    bleu = metric_named("bleu", "13a")
    sums = {name: sufficient(bleu, found, references) for name, found in texts.items()}
    for name, statistics in sums.items():
        systems[name]["bleu"] = float(from_sufficient(bleu, statistics.sum(0)))
        (given.work / f"test.{name}").write_text("\n".join(texts[name]) + "\n", encoding="utf-8")
    test = approximate_randomisation(sums["ours"], sums["Marian"], bleu, samples=2000)
    return {
        "systems": systems,
        "sentences": len(lines),
        "p": test.p_value,
        "signature": signature(bleu, 1),
    }


def our_training(family: Path, loaded: Loaded) -> dict[str, Any]:
    """What the log of our own training says."""
    log = (family / "l2r" / "training" / "log.jsonl").read_text(encoding="utf-8")
    validations = [json.loads(line) for line in log.splitlines()]
    network: torch.nn.Module = loaded.family["l2r"].model.network  # type: ignore[attr-defined]
    return {
        "perplexity": validations[-1]["best"],
        "updates": validations[-1]["step"],
        "parameters": sum(p.numel() for p in network.parameters()),
    }


if __name__ == "__main__":
    main()
