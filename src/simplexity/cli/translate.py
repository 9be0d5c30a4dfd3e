"""`simplexity translate`: sentences in, translations out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from simplexity.config import TranslateConfig
from simplexity.runtime import device_named, keep_memory, use_threads

if TYPE_CHECKING:
    from simplexity.decode import Hypothesis
    from simplexity.translate import Translator


def run(config: TranslateConfig) -> None:
    """Translate sentences, one a line.

    Greedy and beam search use one model. The relaxed decoders eg, sgd and projected minimise a
    joint objective over distributions of words, from the string that a search found, and return
    the best string they saw.
    """
    keep_memory()
    use_threads(config.threads)
    import torch

    from simplexity import build
    from simplexity.cli.progress import Progress
    from simplexity.output import lines_of
    from simplexity.text.files import writing
    from simplexity.trace import Trace

    torch.manual_seed(config.seed)
    family = build.family(config, device_named(config.device))
    with ExitStack() as stack:
        trace = None
        if config.trace is not None:
            file = stack.enter_context(writing(config.trace, config.overwrite))
            trace = Trace(file, family["l2r"].target)
        translator = build.translator(config, family, trace)
        output = stack.enter_context(writing(config.output, config.overwrite))
        progress = stack.enter_context(
            Progress("translating", unit="sentences", quiet=config.quiet)
        )
        for number, found in enumerate(_answers(config, translator)):
            for line in lines_of(number, found, config.n_best, config.output_type):
                output.write(line + "\n")
            progress.update(number + 1)


def _answers(config: TranslateConfig, translator: Translator) -> Iterator[list[Hypothesis]]:
    from simplexity.text.corpora import Bitext
    from simplexity.text.files import read_lines

    if config.init_file is None:
        return translator(read_lines(config.input))
    return translator.improve(Bitext(config.input or Path("-"), config.init_file))
