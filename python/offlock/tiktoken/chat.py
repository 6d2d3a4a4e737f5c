"""How many tokens a chat has as a prompt, by the rules that OpenAI has published for its models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .model import encoding_for_model

CHAT_MODELS = ("gpt-3.5", "gpt-35", "gpt-4", "gpt-5", "chatgpt-", "o1", "o3", "o4", "ft:gpt-3.5", "ft:gpt-4")
"""The beginnings of the names of models that answer chats. They are given messages in one format."""

PER_MESSAGE, PER_NAME = 3, 1
"""Tokens around each message, and around a name."""
FIRST_VERSION, PER_MESSAGE_THEN, PER_NAME_THEN = "gpt-3.5-turbo-0301", 4, -1
"""The same of the first version, in which a name took the place of the role."""
REPLY = 3
"""Tokens with which the reply begins."""

PER_FUNCTION = {"cl100k_base": 10, "o200k_base": 7}
PER_PROPERTIES, PER_PROPERTY, PER_ENUM, PER_ITEM, AFTER_FUNCTIONS = 3, 3, -3, 3, 12
"""Tokens around the parts of the functions that a model may call."""


def num_tokens_from_messages(
    messages: Iterable[Mapping[str, Any]], model: str, *, tools: Sequence[Mapping[str, Any]] | None = None
) -> int:
    """Returns the number of tokens of a prompt: the messages of a chat, and the functions that the model may call.

    The rules are those of OpenAI's cookbook (``num_tokens_from_messages`` and ``num_tokens_for_tools``): exact for the
    models named there, up to GPT-4o. OpenAI has published none for newer models, which are counted by the same rules.

    A message is a dict of strings, as OpenAI's API takes it. Its content may be a list of parts of text.

    Raises ``NotImplementedError`` for a model that answers no chats, ``TypeError`` for a message that is not a mapping, and
    ``ValueError`` for what has no published rule, such as images and calls of functions.
    """
    if not model.startswith(CHAT_MODELS):
        raise NotImplementedError(f"there are no rules for the messages of {model}")
    encoding = encoding_for_model(model)
    per_message, per_name = PER_MESSAGE, PER_NAME
    if model == FIRST_VERSION:
        per_message, per_name = PER_MESSAGE_THEN, PER_NAME_THEN
    count, texts = REPLY, []
    for message in messages:
        if not isinstance(message, Mapping):
            raise TypeError(f"a message must be a mapping, not {type(message).__name__}")
        count += per_message + (per_name if message.get("name") is not None else 0)
        texts += [text for key, value in message.items() for text in _texts(key, value)]
    for function in tools or []:
        count += PER_FUNCTION[encoding.name] + _add_function(function["function"], texts)
    count += AFTER_FUNCTIONS if tools else 0
    return count + sum(encoding.count_batch(texts, disallowed_special=()))


def _texts(key: str, value: object) -> Iterator[str]:
    """Yields the texts of an entry of a message."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)) and key == "content":
        for part in value:
            if part.get("type") != "text":
                raise ValueError(f"there is no rule for a part of the type {part.get('type')!r}")
            yield part["text"]
    elif value is not None:
        raise ValueError(f"there is no rule for {key!r} of a message")


def _add_function(function: Mapping[str, Any], texts: list[str]) -> int:
    """Appends the texts of a function. Returns the number of tokens around its parts."""
    texts.append(f"{function['name']}:{_sentence(function)}")
    properties = function.get("parameters", {}).get("properties", {})
    count = PER_PROPERTIES if properties else 0
    for name, schema in properties.items():
        count += PER_PROPERTY
        if "enum" in schema:
            count += PER_ENUM + PER_ITEM * len(schema["enum"])
            texts += map(str, schema["enum"])
        texts.append(f"{name}:{schema['type']}:{_sentence(schema)}")
    return count


def _sentence(schema: Mapping[str, Any]) -> str:
    return str(schema.get("description", "")).removesuffix(".")
