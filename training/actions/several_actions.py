"""All actions of a turn as one completion."""

from collections.abc import Iterable
from typing import Protocol

from training.actions.parse.joined_calls import join_calls
from training.actions.parse_completion import parse_completion
from training.contracts.config import PromptConfig
from training.contracts.types import Action, ActionKind, Turn


class WritesActions(Protocol):
    """What writes single actions as a prompt's policy would."""

    @property
    def prompt(self) -> PromptConfig: ...

    def action_text(self, action: Action, screen: tuple[int, int]) -> str: ...


def turn_text(writer: WritesActions, turn: Turn, screen: tuple[int, int]) -> str:
    """The completion that does what `turn` did. Raises ValueError where the prompt has none such.

    What is written parses back: some dialects have a form for one action only.
    """
    texts = [writer.action_text(action, screen) for action in turn.actions]
    joined, prompt = "\n".join(texts), writer.prompt
    if len(texts) < 2:
        return joined
    parsed = parse_completion(
        joined,
        dialect=prompt.dialect,
        space=prompt.coordinate_space,
        screen=screen,
        image=screen,
        most=prompt.actions_per_turn,
    )
    if _kinds(parsed.actions) not in (_kinds(turn.actions), _kinds(join_calls(turn.actions))):
        why = parsed.error or f"the {prompt.dialect} dialect reads the last one only"
        raise ValueError(f"{len(texts)} actions in one completion: {why}")
    return joined


def _kinds(actions: Iterable[Action]) -> list[ActionKind]:
    return [action.kind for action in actions]
