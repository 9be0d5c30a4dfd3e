"""`simplexity export`: a Transformer for transformers and CTranslate2."""

from __future__ import annotations

from simplexity.config import ExportConfig


def run(config: ExportConfig) -> None:
    """Write a Transformer as a plain Marian directory with its tokenizer.

    `MarianMTModel` and `AutoTokenizer` of transformers read it, and so does the converter of
    CTranslate2. It is the same model with its pieces numbered anew, and it does its own
    lower-casing. `simplexity translate --forward` takes it, too.
    """
    from simplexity.cli.progress import Progress
    from simplexity.models.export import export_marian
    from simplexity.runtime import quiet_transformers

    quiet_transformers()
    with Progress("exporting", quiet=config.quiet) as progress:
        pieces = export_marian(config.model, config.output, config.member)
        progress.say(f"{config.output}: {pieces:,} pieces")
