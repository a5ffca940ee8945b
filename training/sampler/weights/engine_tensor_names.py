"""Which of the engine's tensors each of the trainer's weights becomes, and what does not fit.

SGLang loads a model by the names of its checkpoints and skips a name that it does not know without a word
(`sglang.srt.models`), so both lists are compared before the first sync.
"""

from collections.abc import Iterable, Mapping

from training.weights.errors import WeightsRefused

FUSED = (
    (".attn.qkv.", ".attn.qkv_proj."),
    (".q_proj.", ".qkv_proj."),
    (".k_proj.", ".qkv_proj."),
    (".v_proj.", ".qkv_proj."),
    (".gate_proj.", ".gate_up_proj."),
    (".up_proj.", ".gate_up_proj."),
    (".experts.gate_up_proj", ".experts.w13_weight"),
    (".experts.down_proj", ".experts.w2_weight"),
    (".in_proj_qkv.", ".in_proj_qkvz."),
    (".in_proj_z.", ".in_proj_qkvz."),
    (".in_proj_b.", ".in_proj_ba."),
    (".in_proj_a.", ".in_proj_ba."),
)
"""Layers that SGLang keeps as one matrix, and what it keeps under other names."""
COMPUTED = ("cos_sin_cache", "inv_freq", "freqs_cis", "_weight_fp32")
"""Parts of the names of tensors that no checkpoint holds."""
ATTENTION = ".self_attn."
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"
SHOWN = 5


def sglang_name(name: str) -> str:
    """The parameter of SGLang's model that transformers' `name` is loaded into, wholly or as a part."""
    name = name.replace("model.visual.", "visual.", 1).replace("model.language_model.", "model.", 1)
    for part, whole in FUSED:
        name = name.replace(part, whole)
    return name


def check_sglang_names(ours: Iterable[str], theirs: Iterable[str]) -> None:
    """Raise WeightsRefused unless `ours` fill exactly `theirs` (tensors that are computed apart)."""
    filled = {sglang_name(name) for name in ours}
    wanted = {name for name in theirs if not any(part in name for part in COMPUTED)}
    if not any(ATTENTION in name for name in wanted):  # of Qwen3.5's blocks it has no module of its own
        filled = {name.replace(ATTENTION, ".") for name in filled}
    if HEAD not in filled and EMBEDDING in filled:
        wanted.discard(HEAD)  # tied: SGLang copies the embedding into a head of its own, if it has one
    _refuse(unknown=filled - wanted, missing=wanted - filled)


def check_shapes(ours: Mapping[str, tuple[int, ...]], theirs: Mapping[str, tuple[int, ...]]) -> None:
    """Raise WeightsRefused unless both have the same names and shapes."""
    wrong = {name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]}
    _refuse(unknown=ours.keys() - theirs.keys(), missing=theirs.keys() - ours.keys(), wrong=wrong)


def _refuse(**problems: Iterable[str]) -> None:
    found = {kind: sorted(names) for kind, names in problems.items() if names}
    if not found:
        return
    lists = "; ".join(
        f"{len(names)} {kind}: {', '.join(names[:SHOWN])}{' ...' if len(names) > SHOWN else ''}"
        for kind, names in found.items()
    )
    raise WeightsRefused(
        f"the trainer's weights do not fit the engine's model ({lists}); "
        "serve the folder that the experiment trains (model.path)"
    )
