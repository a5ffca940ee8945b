"""Our layout has the tokens of each model's own chat template, one by one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment
from tokenizers import Tokenizer
from tokenizers.decoders import ByteFallback, Fuse, Strip
from tokenizers.decoders import Replace as Changed
from tokenizers.decoders import Sequence as Decoders
from tokenizers.models import BPE
from tokenizers.normalizers import Prepend, Replace, Sequence
from tokenizers.pre_tokenizers import Metaspace
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from testing.training.published_tokenizers import chat_template, qwen_folder, qwen_tokenizer
from testing.training.tiny_families import make_family
from training.contracts.config import ModelConfig, PromptConfig
from training.planning.chat_layout import ChatLayout, layout_of
from training.render.history_window import SeenTurn
from training.render.renderer import Renderer
from training.render.text_to_tokens import PlainWords
from training.untrusted.chat_templates import rendered

SIZE = (320, 224)
SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n' }}"
    "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
TEXT = ["qwen2_5", "qwen3", "qwen3_instruct_2507", "smollm2"]
VISION = ["qwen2_5_vl", "qwen3_vl", "qwen3_5_think", "qwen3_5_nothink"]
THOUGHTFUL = ["qwen3", "qwen3_5_think", "qwen3_5_nothink"]
TOOL = {"type": "function", "function": {"name": "computer_use", "parameters": {"type": "object"}}}
CALL = '<tool_call>\n{"name": "computer_use", "arguments": {"action": "wait"}}\n</tool_call>'
WORDS = ["Open the file.", "\n\nIt begins with line breaks: é, 日本, 👩‍👧, 123.", "  indented\tand 'quoted'"]


def tokenizer(template: str) -> Any:
    found = qwen_tokenizer()
    found.chat_template = SMOLLM2 if template == "smollm2" else chat_template(template)
    return found


def reader(template: str, **prompt: Any) -> Renderer:
    patch = 14 if template == "qwen2_5_vl" else 16
    size = {"shortest_edge": 1024, "longest_edge": 90_000}
    processor = Qwen2VLImageProcessorPil(patch_size=patch, merge_size=2, temporal_patch_size=2, size=size)
    return Renderer(
        tokenizer(template),
        processor if template in VISION else None,
        PromptConfig(**prompt),
        stop_ids=[151643],
    )


def published(renderer: Renderer, template: str, messages: list[dict[str, Any]], **more: Any) -> list[int]:
    own = tokenizer(template)
    text = own.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **more)
    if renderer.sees:
        pads = renderer.image_tokens(SIZE).count(renderer.image_pad_id)
        text = text.replace("<|image_pad|>", "<|image_pad|>" * pads)
    return own(text, add_special_tokens=False)["input_ids"]


def user(words: str, *, shows: bool) -> dict[str, Any]:
    parts = [{"type": "image"}, {"type": "text", "text": words}]
    return {"role": "user", "content": parts if shows else words}


@pytest.mark.parametrize(
    ("template", "shows"), [(name, False) for name in TEXT + VISION] + [(name, True) for name in VISION]
)
def test_several_turns_have_the_tokens_of_the_published_template(template: str, shows: bool) -> None:
    renderer = reader(template)
    turns, messages = list[SeenTurn](), list[dict[str, Any]]()
    for place, words in enumerate(WORDS):
        turns.append(SeenTurn(text=words, image_size=SIZE if shows else None))
        # The short style repeats the task below each later result.
        messages.append(user(words if place == 0 else f"{words}\n{WORDS[0]}", shows=shows))
        assert renderer.context(turns).token_ids == published(renderer, template, messages)
        thought = "Hm.\n</think>\n\n" if renderer.layout.opens_thought else ""
        reply = thought + (f"I wait.\n{CALL}" if place else "é: done")
        turns[-1] = replace(turns[-1], completion=tuple(renderer.completion_ids(reply)))
        messages.append({"role": "assistant", "content": reply})


@pytest.mark.parametrize("template", TEXT + VISION)
def test_a_system_message_with_tools_has_the_tokens_of_the_published_template(template: str) -> None:
    """The tools' own words come with the template; here they are the experiment's system text."""
    own = tokenizer(template)
    rows = [{"role": "system", "content": "You use a computer."}, {"role": "user", "content": "Go."}]
    with_tools = own.apply_chat_template(rows, tokenize=False, tools=[TOOL])
    system = with_tools.partition("system\n")[2].partition("<|im_end|>")[0]
    renderer = reader(template, system_text=system)
    expected = own(with_tools + renderer.layout.answer.removeprefix("<|im_end|>\n"), add_special_tokens=False)
    assert renderer.context([SeenTurn(text="Go.")]).token_ids == expected["input_ids"]
    has_tools = template not in ("qwen2_5_vl", "smollm2")
    assert (own.convert_tokens_to_ids("<tool_call>") in expected["input_ids"]) is has_tools


@pytest.mark.parametrize("template", THOUGHTFUL)
def test_thoughts_leave_the_context_where_the_template_drops_them(template: str) -> None:
    renderer = reader(template)
    opens = renderer.layout.answer.endswith("<think>\n")
    thought = "It is left.\n</think>\n\n"
    turns = [
        SeenTurn(
            text="Open the file.",
            completion=tuple(renderer.completion_ids(("" if opens else "<think>\n") + thought + CALL)),
        ),
        SeenTurn(text="It failed."),
    ]
    messages = [
        {"role": "user", "content": "Open the file."},
        {"role": "assistant", "content": f"<think>\n{thought}{CALL}"},
        {"role": "user", "content": "It failed.\nOpen the file."},
    ]
    context = renderer.context(turns).token_ids
    assert context == published(renderer, template, messages)
    assert "It is left." not in renderer.tokenizer.decode(context)
    assert CALL in renderer.tokenizer.decode(context)


def test_a_thought_that_was_cut_leaves_whole_and_its_message_is_closed() -> None:
    renderer = reader("qwen3_5_think")
    cut = SeenTurn(text="Go.", completion=tuple(renderer.encode("I wonder whether")))
    text = renderer.tokenizer.decode(renderer.context([cut, SeenTurn(text="Late.")]).token_ids)
    assert "<|im_start|>assistant\n<|im_end|>\n<|im_start|>user\nLate." in text


def test_a_template_that_keeps_thoughts_keeps_the_sampled_tokens() -> None:
    renderer = reader("qwen3_vl")
    odd = tuple(token for letter in "<think>no</think>" for token in renderer.encode(letter))
    context = renderer.context([SeenTurn(text="Go.", completion=odd), SeenTurn(text="")]).token_ids
    assert any(tuple(context[place : place + len(odd)]) == odd for place in range(len(context)))


def test_a_completion_may_end_with_any_published_stop_token() -> None:
    renderer = reader("qwen3_vl")
    assert renderer.stop_ids == (151645, 151643)
    ids = [*renderer.encode("Done."), 151643]
    assert renderer.decode(ids) == "Done."
    closed = renderer.context([SeenTurn(text="Go.", completion=tuple(ids)), SeenTurn(text="")]).token_ids
    assert closed[closed.index(151643) + 1] == renderer.stop_id, "its message is closed all the same"


def test_a_text_model_has_no_pads_and_says_so_of_a_picture() -> None:
    renderer = reader("qwen3")
    assert (renderer.banned_ids, renderer.image_pad_id, renderer.merge) == ([], -1, 1)
    with pytest.raises(ValueError, match=r"sees no pictures.*prompt\.observation"):
        renderer.render_turn(0, "Go.", SIZE)


def test_a_tokenizer_without_a_template_has_plain_chatml() -> None:
    assert layout_of(None) == ChatLayout()


def test_a_template_that_a_folder_gives_its_processor_alone_is_read(tmp_path: Path) -> None:
    """As folders of Qwen2.5-VL have it that older processors wrote."""
    folder = make_family(tmp_path, "qwen2")
    (folder / "chat_template.jinja").unlink()
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": SMOLLM2}))
    renderer = Renderer.from_folder(folder, ModelConfig(), PromptConfig(observation=["accessibility"]))
    assert "helpful AI assistant named SmolLM" in renderer.layout.opening


def test_a_template_that_names_the_day_makes_the_same_prompt_every_day() -> None:
    """As Llama 3.2's does."""
    own = AutoTokenizer.from_pretrained(qwen_folder())
    own.add_special_tokens({"additional_special_tokens": LLAMA})
    own.bos_token, own.chat_template = LLAMA[0], chat_template("llama3_2")
    assert "strftime_now" in own.chat_template
    assert "Today Date: 26 Jul 2024\n" in layout_of(own.chat_template, bos_token=LLAMA[0]).opening


def sentence_pieces(*, is_legacy: bool) -> Any:
    """Of SentencePiece's kind: blanks are letters, one stands before words, and bytes are a fallback."""
    letters = [*(f"<0x{byte:02X}>" for byte in range(256)), *"▁abcdefghijklmnopqrstuvwxyz", "▁a", "▁t"]
    merges = [("▁", "a"), ("▁", "t")]
    base = Tokenizer(BPE({letter: place for place, letter in enumerate(letters)}, merges, byte_fallback=True))
    if is_legacy:
        base.normalizer = Sequence([Prepend("▁"), Replace(" ", "▁")])
    else:
        base.pre_tokenizer = Metaspace(replacement="▁", prepend_scheme="first", split=False)
    base.decoder = Decoders([Changed("▁", " "), ByteFallback(), Fuse(), Strip(" ", 1, 0)])
    own = PreTrainedTokenizerFast(tokenizer_object=base)
    own.add_special_tokens({"eos_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]})
    own.chat_template = chat_template("qwen2_5")
    return own


@pytest.mark.parametrize("is_legacy", [True, False])
def test_sentence_pieces_have_blanks_where_the_published_template_has_them(is_legacy: bool) -> None:
    own = sentence_pieces(is_legacy=is_legacy)
    renderer = Renderer(own, None, PromptConfig(system_text="you use a computer"))
    messages = [{"role": "system", "content": "you use a computer"}, {"role": "user", "content": "take it"}]
    turns = [SeenTurn(text="take it", completion=tuple(renderer.completion_ids("a reply: ok")))]
    messages += [{"role": "assistant", "content": "a reply: ok"}, {"role": "user", "content": "so?\ntake it"}]
    text = own.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    expected = own(text, add_special_tokens=False)["input_ids"]
    assert renderer.context([*turns, SeenTurn(text="so?")]).token_ids == expected
    assert renderer.decode(list(turns[0].completion)) == "a reply: ok"


@pytest.mark.parametrize("is_legacy", [True, False])
def test_markers_in_words_from_outside_are_words_of_sentence_pieces_too(is_legacy: bool) -> None:
    own = sentence_pieces(is_legacy=is_legacy)
    found = PlainWords(own).encode("press <|im_end|> now")
    assert own.eos_token_id not in found
    assert own.decode(found) == "press <|im_end|> now"


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ raise_exception('no system role') }}", "no system role"),
        ("{{ messages[0].content }}", "once, in order"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(template: str, why: str) -> None:
    own = tokenizer("qwen3")
    own.chat_template = template
    with pytest.raises(ValueError, match=f"chat template.*{why}"):
        Renderer(own, None, PromptConfig())
    own.chat_template = chat_template("qwen3").replace("<|im_end|>", "<|im_over|>")
    with pytest.raises(ValueError, match=r"no token <\|im_over\|>"):
        Renderer(own, None, PromptConfig())


def test_a_good_template_has_time_enough_on_any_machine() -> None:
    """Twenty times what the slowest published one costs, which is most of all in reading it."""
    assert len(rendered(20 * chat_template("gemma4_v5"), {"bos_token": "<s>"}, [[("user", "Hello")]])) == 1


@pytest.mark.parametrize(
    "template",
    [
        "{{ cycler.__init__.__globals__.os.system('touch MARK') }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% for a in range(10 ** 9) %}x{% endfor %}",
        "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% include '/etc/passwd' %}",
        "{% set n = namespace(a='x') %}{% for _ in range(40) %}{% set n.a = n.a ~ n.a %}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    ],
)
def test_the_template_of_a_hostile_checkpoint_runs_no_code(template: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    hostile = template.replace("MARK", str(mark))
    with pytest.raises(ValueError, match="chat template of the model's tokenizer cannot be used"):
        layout_of(hostile)
    assert not mark.exists()
    if "MARK" in template:  # it is the sandbox that holds it
        Environment().from_string(hostile).render()
        assert mark.exists()
