"""`simplexity pack`: a family in a quarter of its room."""

from __future__ import annotations

from simplexity.config import PackConfig


def run(config: PackConfig) -> None:
    """Store models in 8 bits a weight, to send them or to keep them.

    The new directory is used like the old one. It takes a quarter of the room, is as fast, and
    translates nearly alike. Packed models are not trained further: keep the old ones for that.
    """
    from simplexity.cli.progress import Progress
    from simplexity.models.packing import pack_family
    from simplexity.runtime import quiet_transformers

    quiet_transformers()
    with Progress("packing", quiet=config.quiet) as progress:
        for packed in pack_family(config.model, config.output, config.overwrite):
            before, after = packed.before / 1e6, packed.after / 1e6
            progress.say(f"{packed.name}: {before:,.1f} MB became {after:,.1f} MB")
