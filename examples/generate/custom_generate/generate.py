"""Relaxed decoding for `model.generate(custom_generate="examples/generate")`.

transformers runs this file where it is trusted: `trust_remote_code=True`. What is not an option
here goes on to `generate`.
"""

from __future__ import annotations

from typing import Any


def generate(
    model: Any,
    tokenizer: Any = None,
    reverse: str | None = None,
    lm: str | None = None,
    settings: dict[str, Any] | None = None,
    **inputs: Any,
) -> Any:
    import simplexity

    decode = simplexity.relaxed(tokenizer, reverse=reverse, lm=lm, **(settings or {}))
    given = {name: value for name, value in inputs.items() if value is not None}
    return model.generate(**given, custom_generate=decode)
