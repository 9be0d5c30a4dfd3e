"""`simplexity train`: models from parallel text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexity.cli.progress import Progress
from simplexity.config import TrainConfig
from simplexity.runtime import end_with_parent, keep_memory, use_threads

if TYPE_CHECKING:
    from simplexity.models.family import MemberName
    from simplexity.train.distributed import Workers
    from simplexity.train.family import Material


def run(config: TrainConfig) -> None:
    """Train a model, or a family of models, from parallel text.

    The family is a directory with one model for each direction: l2r writes translations from
    their first word on, r2l from their last, reverse translates back. They share vocabularies,
    so that one search can use them together. A run that was broken off goes on where it stopped
    when the same command is given again.
    """
    end_with_parent()
    keep_memory()
    use_threads(config.threads)
    from simplexity.train.distributed import join_workers
    from simplexity.train.family import is_trained, open_directory, prepare
    from simplexity.train.side_by_side import train_side_by_side

    workers = join_workers()
    if workers.rank == 0:
        open_directory(config)
    workers.wait()
    quiet = config.quiet or workers.rank > 0
    left: list[MemberName] = [n for n in config.directions if not is_trained(config.output, n)]
    with Progress(str(config.output), quiet=quiet) as talk:
        for name in config.directions:
            if name not in left:
                talk.say(f"{name}: trained already; --overwrite starts it anew")
    if config.jobs > 1 and len(left) > 1 and workers.size == 1:
        train_side_by_side(config, left)
    elif left:
        material = prepare(config)
        for name in left:
            _train_one(config, name, material, workers, quiet)


def _train_one(
    config: TrainConfig, name: MemberName, material: Material, workers: Workers, quiet: bool
) -> None:
    from simplexity.train.examples import for_member
    from simplexity.train.family import train_member
    from simplexity.train.trainer import Update

    note = ""
    epoch_words = for_member(material.train, name).words
    # The time left is that of all epochs; training may stop before.
    with Progress(name, config.max_epochs * epoch_words, "words", quiet=quiet) as progress:
        for part, examples in (("training", material.train), ("development", material.dev)):
            if examples.left_out:
                progress.say(
                    f"{name}: {examples.left_out} {part} pairs left out, "
                    f"empty or longer than {config.max_length} words"
                )
        for event in train_member(config, name, material, workers):
            where = event.progress
            if isinstance(event, Update):
                done = (where.epoch + where.batch / event.batches) * epoch_words
                place = f"epoch {where.epoch + 1}, batch {where.batch}/{event.batches}"
                progress.update(round(done), ", ".join([place, *([note] if note else [])]))
            else:
                note = f"dev perplexity {event.perplexity:.3f}"
                mark = " (best)" if event.improved else ""
                progress.say(
                    f"{name}: epoch {where.epoch + 1}, update {where.step}, {note}{mark}, "
                    f"learning rate {event.learning_rate:.2g}"
                )
