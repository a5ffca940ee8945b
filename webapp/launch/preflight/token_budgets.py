"""Pre-flight: do the budgets of tokens, images and patches leave room for what they limit?"""

from collections.abc import Iterator

from training.contracts.config import ExperimentConfig
from webapp.launch.preflight.check import Check

CHARS_PER_TOKEN = 3.5
"""Of trees and terminals; three to four."""


def budget_checks(config: ExperimentConfig) -> Iterator[Check]:
    """Nothing for budgets that fit."""
    sampling = config.sampling
    if sampling.max_completion_tokens >= sampling.max_context_tokens:
        text = f"The context of {sampling.max_context_tokens} tokens has no room for the prompt beside it."
        title = f"A completion may have {sampling.max_completion_tokens} tokens"
        yield Check(
            "bad", title, f"{text} Raise the context or lower this.", "sampling.max_completion_tokens"
        )
    if config.prompt.shows_screen:
        yield from _screenshots(config)
    yield from _texts(config)
    if config.optimiser.packing:
        yield from _packing(config)


def _screenshots(config: ExperimentConfig) -> Iterator[Check]:
    """The smallest screenshot must fit; how many of the largest do is worth knowing."""
    sampling, model = config.sampling, config.model
    room = sampling.max_context_tokens - sampling.max_completion_tokens
    name = "sampling.max_context_tokens"
    if sampling.max_image_tokens and sampling.max_image_tokens < room:
        room, name = sampling.max_image_tokens, "sampling.max_image_tokens"
    per_token = model.image_factor**2
    smallest, largest = -(-model.min_pixels // per_token), model.max_pixels // per_token
    if smallest > room:
        text = f"One has at least {smallest} tokens (model.min_pixels), and {room} are free. Raise {name}."
        yield Check("bad", "No screenshot fits the context", text, name)
        return
    wanted = _kept_turns(config)
    if largest * wanted > room:
        text = (
            f"{wanted} screenshots of the largest size ({largest} tokens, model.max_pixels) need "
            f"{largest * wanted} of {room} tokens. Longer trajectories are truncated: fine if screens "
            "are smaller, else raise it, lower model.max_pixels, or use prompt.history window or actions."
        )
        yield Check("info", f"Room for {room // largest} full screenshots", text, name)


def _kept_turns(config: ExperimentConfig) -> int:
    """Whose screenshots and texts stand in a context at most."""
    prompt, turns = config.prompt, config.desktops.max_turns
    if prompt.history == "full":
        return turns
    first = prompt.keep_first_images if prompt.history == "window" else 0
    return min(turns, first + prompt.keep_last_images + prompt.window_slack)


def _texts(config: ExperimentConfig) -> Iterator[Check]:
    """Trees, lists of marks and terminals as long as their budgets allow; most are shorter."""
    prompt, sampling = config.prompt, config.sampling
    trees = prompt.reads_tree + prompt.reads_marks
    chars = trees * prompt.accessibility_chars + prompt.reads_terminal * prompt.terminal_chars
    if not chars or not prompt.observation_every:
        return
    one, room = round(chars / CHARS_PER_TOKEN), sampling.max_context_tokens - sampling.max_completion_tokens
    name = "sampling.max_context_tokens"
    if sampling.max_text_tokens and sampling.max_text_tokens < room:
        room, name = sampling.max_text_tokens - sampling.max_completion_tokens, "sampling.max_text_tokens"
    elif prompt.shows_screen:
        room -= -(-config.model.min_pixels // config.model.image_factor**2)
    turns = -(-_kept_turns(config) // prompt.observation_every)
    least = "prompt.accessibility_chars" if trees else "prompt.terminal_chars"
    if one > room:
        text = (
            f"They may have {chars} characters, about {one} tokens, and {max(0, room)} are free. A turn "
            f"whose texts do not fit ends its trajectory: raise {name} or lower {least}."
        )
        yield Check("warning", "The texts of one turn may not fit the context", text, least)
    elif one * turns > room:
        text = (
            f"Those of {turns} turns may have about {one * turns} of {room} tokens. Longer trajectories are "
            f"truncated: fine if trees are smaller, else raise {name}, lower {least}, or use prompt.history."
        )
        yield Check("info", f"Room for the longest texts of {room // one} turns", text, name)


def _packing(config: ExperimentConfig) -> Iterator[Check]:
    """A sequence above a budget is a microbatch of its own: more memory than the budget says."""
    optimiser, longest = config.optimiser, config.sampling.max_context_tokens
    if optimiser.microbatch_tokens < longest:
        text = (
            f"A trajectory may have {longest} (sampling.max_context_tokens); it would be a microbatch of its "
            f"own above the budget. Set at least {longest}."
        )
        title = f"Microbatches of {optimiser.microbatch_tokens} tokens"
        yield Check("warning", title, text, "optimiser.microbatch_tokens")
    patches = -(-4 * config.model.min_pixels // config.model.image_factor**2)
    if config.prompt.shows_screen and optimiser.microbatch_patches < patches:
        text = f"One screenshot has at least {patches} (model.min_pixels). Set at least {4 * longest}."
        title = f"Microbatches of {optimiser.microbatch_patches} patches hold no screenshot"
        yield Check("bad", title, text, "optimiser.microbatch_patches")
