"""The table of models and their encodings."""

from __future__ import annotations

from offlock import _offlock

from .core import Encoding
from .registry import get_encoding

MODEL_PREFIX_TO_ENCODING: dict[str, str] = dict(_offlock.MODEL_PREFIXES)
MODEL_TO_ENCODING: dict[str, str] = dict(_offlock.MODELS)


def encoding_name_for_model(model_name: str) -> str:
    """Returns the name of the encoding that ``model_name`` uses.

    Looks in the table of models first, then takes the first prefix that matches. Raises ``KeyError`` for an unknown
    model.
    """
    if model_name in MODEL_TO_ENCODING:
        return MODEL_TO_ENCODING[model_name]
    for prefix, encoding_name in MODEL_PREFIX_TO_ENCODING.items():
        if model_name.startswith(prefix):
            return encoding_name
    raise KeyError(
        f"Could not automatically map {model_name} to a tokeniser. "
        "Please use `tiktoken.get_encoding` to explicitly get the tokeniser you expect."
    )


def encoding_for_model(model_name: str) -> Encoding:
    """Returns the encoding that ``model_name`` uses. Raises ``KeyError`` for an unknown model."""
    return get_encoding(encoding_name_for_model(model_name))
