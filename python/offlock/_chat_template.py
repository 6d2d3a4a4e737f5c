"""The chat templates of models, rendered by Jinja as Hugging Face's ``transformers`` does."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

CONFIG, OWN_FILE = "tokenizer_config.json", "chat_template.jinja"
"""The files of a model's folder that have its template."""

MORE_TEMPLATES = "additional_chat_templates"
"""The folder in a model's folder that has templates beside the default one, each in a file with its name."""

REASONING = ["reasoning_content", "thinking", "reasoning"]
"""The names under which messages have what a model thought, the first one that counts in front."""


REFUSED = frozenset(
    [
        "continue_final_message", "padding", "truncation", "max_length", "return_tensors", "return_dict",
        "return_assistant_tokens_mask", "tokenizer_kwargs",
    ]
)  # fmt: skip
"""What transformers' method takes that is no variable of a template."""


class ChatTemplate:
    """What a model's folder says about chats: its templates by name, and the tokens that they may use."""

    def __init__(self, source: str | bytes) -> None:
        """Reads the folder of a tokenizer's file; the content of a file has no folder."""
        self.templates: dict[str, str] = {}
        self.tokens: dict[str, str] = {}
        self.last: tuple[str | None, Any] = None, None
        if isinstance(source, str):
            path = Path(source)
            self._read(path if path.is_dir() else path.parent)

    def _read(self, folder: Path) -> None:
        if (folder / CONFIG).is_file():
            try:
                config = json.loads((folder / CONFIG).read_text("utf-8"))
                self.tokens = dict(_tokens(config))
                self.templates = _templates(config.get("chat_template"))
            except (ValueError, AttributeError, KeyError, TypeError) as error:
                raise ValueError(f"{folder / CONFIG} is not valid: {error!r}") from error
        if (folder / OWN_FILE).is_file():
            self.templates["default"] = (folder / OWN_FILE).read_text("utf-8")
        for path in sorted((folder / MORE_TEMPLATES).glob("*.jinja")):
            self.templates[path.stem] = path.read_text("utf-8")

    def choose(self, wanted: str | None, has_tools: bool) -> str:
        """Returns the template of this name, the one that was given, or the one that is for these messages."""
        if wanted is not None:
            return self.templates.get(wanted, wanted)
        name = "tool_use" if has_tools and "tool_use" in self.templates else "default"
        if name not in self.templates:
            raise ValueError("the model's folder has no chat template: pass one as chat_template=")
        return self.templates[name]

    def render(
        self,
        messages: Iterable[Mapping[str, Any]],
        chat_template: str | None,
        tools: Sequence[Mapping[str, Any]] | None,
        add_generation_prompt: bool,
        variables: Mapping[str, Any],
    ) -> str:
        """Returns the text that the model gets."""
        if refused := sorted(name for name in REFUSED.intersection(variables) if variables[name]):
            raise TypeError(f"apply_chat_template does not support {refused[0]}=; encode its text instead")
        chat = [_normalized(message) for message in messages]
        if not chat:
            raise ValueError("messages must have at least one message")
        template = self._compiled(self.choose(chat_template, bool(tools)))
        given = {**self.tokens, "documents": None, **variables, "messages": chat, "tools": tools}
        rendered: str = template.render(add_generation_prompt=add_generation_prompt, **given)
        return rendered

    def _compiled(self, template: str) -> Any:
        """Returns a template to render, and keeps the last one."""
        kept, compiled = self.last
        if kept != template:
            compiled = _environment().from_string(template)
            self.last = template, compiled
        return compiled


def _normalized(message: object) -> dict[str, Any]:
    """Returns a message as transformers passes it on: without keys that have no value, and with its reasoning under each
    name that templates read."""
    if not isinstance(message, Mapping):
        raise TypeError("messages must be one chat: a list of mappings with role and content")
    given = {key: value for key, value in message.items() if value is not None}
    reasoning = next((given[name] for name in REASONING if name in given), None)
    if reasoning is None:
        return given
    return {"thinking": reasoning, **given, "reasoning_content": reasoning}


def _templates(given: Any) -> dict[str, str]:
    """Returns the templates of a configuration, which has none, one, or a list of several with names."""
    if isinstance(given, str):
        return {"default": given}
    if isinstance(given, list):
        return {each["name"]: each["template"] for each in given}
    return dict(given or {})


def _tokens(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns special tokens like ``bos_token``, which are strings or objects with a content."""
    found = []
    for name, token in config.items():
        content = token.get("content") if isinstance(token, dict) else token
        if name.endswith("_token") and isinstance(content, str):
            found.append((name, content))
    return found


def _environment() -> Any:
    try:
        nodes, ext, sandbox = (
            importlib.import_module(f"jinja2.{name}") for name in ["nodes", "ext", "sandbox"]
        )
    except ImportError as error:
        raise ImportError("chat templates need the package jinja2: pip install jinja2") from error

    def parse(_: object, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)

    # The block that marks what the model has written renders what is in it.
    generation = type("Generation", (ext.Extension,), {"tags": {"generation"}, "parse": parse})
    # A template may come from a stranger: it runs in a sandbox and cannot change what it gets.
    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[generation, ext.loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _tojson(value: object, **options: Any) -> str:
    return json.dumps(value, **{"ensure_ascii": False, **options})


def _raise(message: str) -> NoReturn:
    raise ValueError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)
