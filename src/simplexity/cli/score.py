"""`simplexity score`: log P of given translations."""

from __future__ import annotations

from simplexity.config import ScoreConfig
from simplexity.runtime import device_named, keep_memory, use_threads
from simplexity.shipped import family_or_shipped


def run(config: ScoreConfig) -> None:
    """Give the natural log-probability of translations, one number a line.

    The end of the sentence counts; nothing is divided by length. The reverse member gives
    log P(source | target) for the same two files. With --per-token, each line has one number a
    token, in reading order, and last that of the end.
    """
    directory = family_or_shipped(config.model)
    keep_memory()
    use_threads(config.threads)
    from simplexity.cli.progress import Progress
    from simplexity.models.family import load_family
    from simplexity.score import score_pairs
    from simplexity.text.corpora import Bitext
    from simplexity.text.files import writing

    family = load_family(directory, (config.member,), device_named(config.device))
    pairs = Bitext(config.source, config.target)
    with (
        writing(config.output, config.overwrite) as output,
        Progress("scoring", unit="sentences", quiet=config.quiet) as progress,
    ):
        scores = score_pairs(pairs, family[config.member], config.batch_size)
        for number, score in enumerate(scores, 1):
            shown = score.tokens if config.per_token else (score.total,)
            output.write(" ".join(f"{value:.6f}" for value in shown) + "\n")
            progress.update(number)
