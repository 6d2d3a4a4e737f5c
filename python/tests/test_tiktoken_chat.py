"""Tokens of chats: OpenAI's rules against what its API has counted, and the templates of models."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from test_tokenizer import FILE

from offlock import tiktoken
from offlock.tokenizer import Tokenizer

CASES = json.loads((Path(__file__).parents[2] / "vectors/tokens/chats.json").read_text())
USER = {"role": "user", "content": "Hi"}


def count(*messages: dict[str, Any], model: str = "gpt-4o", tools: list[dict[str, Any]] | None = None) -> int:
    return tiktoken.num_tokens_from_messages(messages, model, tools=tools)


@pytest.mark.parametrize("case", CASES)
def test_counts_are_those_of_the_api(case: dict[str, Any]) -> None:
    for model, counted in case["counts"].items():
        assert count(*case["messages"], model=model, tools=case["tools"]) == counted, model


def test_parts_of_messages() -> None:
    assert count() == 3
    assert count(USER) == 3 + 3 + 2
    assert count(USER | {"name": "Ann"}) == 3 + 3 + 2 + 1 + 1
    assert count(USER | {"name": None}) == count(USER)
    assert count(USER | {"name": "Ann"}, model="gpt-3.5-turbo-0301") == 3 + 4 + 2 + 1 - 1
    assert count(USER | {"content": [{"type": "text", "text": "Hi"}]}) == count(USER)
    assert count(USER | {"content": "<|endoftext|>"}) == 3 + 3 + 1 + len(
        tiktoken.encoding_for_model("gpt-4o").encode("<|endoftext|>", disallowed_special=())
    )
    bare = {"type": "function", "function": {"name": "now"}}
    assert count(USER, tools=[bare]) == count(USER) + 7 + 2 + 12


def test_what_has_no_rule_is_named() -> None:
    with pytest.raises(ValueError, match="a part of the type 'image_url'"):
        count(USER | {"content": [{"type": "image_url", "image_url": {"url": "…"}}]})
    with pytest.raises(ValueError, match="'tool_calls' of a message"):
        count({"role": "assistant", "content": None, "tool_calls": [{}]})
    with pytest.raises(TypeError, match="a message must be a mapping, not str"):
        tiktoken.num_tokens_from_messages(USER, "gpt-4o")  # type: ignore[arg-type]
    for model in ["text-embedding-3-small", "davinci", "gpt-oss-120b", "nonesuch"]:
        with pytest.raises(NotImplementedError, match=model):
            count(USER, model=model)


PLAIN = "{{ bos_token }}{% for message in messages %}<s>{{ message['role'] }}\n{{ message['content'] }}{% endfor %}"
TEMPLATE = PLAIN + "{% if add_generation_prompt %}<s>assistant\n{% endif %}"


def model(folder: Path, template: object, **config: object) -> Tokenizer:
    (folder / "tokenizer.json").write_text(json.dumps(FILE))
    config = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": template, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return Tokenizer(folder)


def test_a_model_has_a_template(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    tokenizer = model(tmp_path, TEMPLATE)
    text = tokenizer.apply_chat_template([USER], tokenize=False)
    assert text == "<s><s>user\nHi"
    assert tokenizer.apply_chat_template([USER]) == tokenizer.encode(text, add_special_tokens=False)
    text += "<s>assistant\n"
    assert tokenizer.apply_chat_template([USER], tokenize=False, add_generation_prompt=True) == text
    assert tokenizer.num_tokens_from_messages([USER]) == tokenizer.count(text, add_special_tokens=False)
    assert tokenizer.num_tokens_from_messages([USER], add_generation_prompt=False) == tokenizer.count(
        text.removesuffix("<s>assistant\n"), add_special_tokens=False
    )
    assert tokenizer.apply_chat_template([USER], tokenize=False, bos_token="!")[0] == "!"


def test_templates_by_name_and_in_a_file_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    named = [
        {"name": "default", "template": "plain"},
        {"name": "tool_use", "template": "{{ tools | tojson }}"},
        {"name": "other", "template": "{{ eos_token }}"},
    ]
    tokenizer = model(tmp_path, named)
    assert tokenizer.apply_chat_template([USER], tokenize=False) == "plain"
    assert tokenizer.apply_chat_template([USER], tokenize=False, chat_template="other") == "</s>"
    tools = [{"name": "weather", "unit": "°C <"}]
    assert tokenizer.apply_chat_template([USER], tokenize=False, tools=tools) == json.dumps(
        tools, ensure_ascii=False
    )
    (tmp_path / "chat_template.jinja").write_text("{% for m in messages %}{% break %}{% endfor %}file")
    assert Tokenizer(tmp_path).apply_chat_template([USER], tokenize=False) == "file"
    assert Tokenizer(tmp_path / "tokenizer.json").apply_chat_template([USER], tokenize=False) == "file"


def test_more_templates_lie_in_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    model(tmp_path, "plain")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("{{ documents | length }} documents")
    tokenizer = Tokenizer(tmp_path)
    text = tokenizer.apply_chat_template([USER], tokenize=False, chat_template="rag", documents=[{}, {}])
    assert text == "2 documents"


def test_messages_come_to_templates_as_in_transformers() -> None:
    pytest.importorskip("jinja2")
    tokenizer = Tokenizer(json.dumps(FILE).encode())

    def render(template: str, *messages: dict[str, Any]) -> str:
        return tokenizer.apply_chat_template(iter(messages), tokenize=False, chat_template=template)

    call = {"role": "assistant", "content": None, "tool_calls": [{"name": "weather", "arguments": None}]}
    before = copy.deepcopy(call)
    assert render("{{ messages[0].content }}, {{ messages[0].content is defined }}", call) == ", False"
    assert render("{{ messages[0].tool_calls[0].arguments }}", call) == "None"
    assert call == before
    assert render("{{ documents is defined }}, {{ documents }}, {{ tools }}", USER) == "True, None, None"
    thought = "{{ messages[0].reasoning_content }}, {{ messages[0].thinking }}, {{ messages[0].reasoning }}"
    assert render(thought, {"reasoning": "x"}) == "x, x, x"
    assert render(thought, {"thinking": "y", "reasoning": "x"}) == "y, y, x"
    assert render(thought, {"reasoning_content": "z", "thinking": "y"}) == "z, y, "
    with pytest.raises(ValueError, match="at least one message"):
        render("x")


@pytest.mark.parametrize("config", ["{", "[]", '{"chat_template": [{"name": "x"}]}', '{"chat_template": 5}'])
def test_a_configuration_that_is_not_valid_is_named(tmp_path: Path, config: str) -> None:
    model(tmp_path, "x")
    (tmp_path / "tokenizer_config.json").write_text(config)
    with pytest.raises(ValueError, match=r"tokenizer_config\.json is not valid"):
        Tokenizer(tmp_path).apply_chat_template([USER])


def test_what_templates_may_and_may_not(tmp_path: Path) -> None:
    jinja2 = pytest.importorskip("jinja2")
    tokenizer = Tokenizer(json.dumps(FILE).encode())

    def render(template: str, **variables: object) -> str:
        return tokenizer.apply_chat_template(
            [USER],
            tokenize=False,
            chat_template=template,
            tools=None,
            add_generation_prompt=False,
            **variables,
        )

    assert render("{% generation %}a{{ x }}{% endgeneration %}", x=5) == "a5"
    assert render("{{ strftime_now('%Y') | length }}") == "4"
    assert render("  {% if true %}\nline\n  {% endif %}\n") == "line\n"
    with pytest.raises(ValueError, match="roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(jinja2.exceptions.SecurityError):
        render("{{ messages.append(1) }}")
    with pytest.raises(jinja2.exceptions.SecurityError):
        render("{{ ''.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(jinja2.exceptions.TemplateSyntaxError):
        render("{% if %}")
    with pytest.raises(ValueError, match="no chat template"):
        tokenizer.apply_chat_template([USER])
    wrong: Any
    for wrong in (
        {"continue_final_message": True},
        {"truncation": True, "max_length": 4},
        {"return_tensors": "np"},
    ):
        with pytest.raises(TypeError, match=f"does not support {min(wrong)}="):
            render("x", **wrong)
        with pytest.raises(TypeError, match="does not support"):
            tokenizer.num_tokens_from_messages([USER], chat_template="x", **wrong)
    assert render("x", return_tensors=None, padding=False) == "x"
    for wrong in ([[USER], [USER]], "x", [None]):
        with pytest.raises(TypeError, match="one chat"):
            tokenizer.apply_chat_template(wrong, chat_template="x")


def test_without_jinja_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ["jinja2", "jinja2.nodes"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install jinja2"):
        Tokenizer(json.dumps(FILE).encode()).apply_chat_template([USER], chat_template="never compiled")
