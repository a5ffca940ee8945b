"""Parts of an action that a dialect may have no words for: it refuses them, and leaves none out."""

from training.contracts.types import Action, ActionKind


def newer_parts(action: Action) -> dict[str, object]:
    """What `action` says beyond its kind, point, text and keys, by the name of the part."""
    parts: dict[str, object] = {}
    if action.modifiers:
        parts["modifiers"] = list(action.modifiers)
    if action.button != "left":
        parts["button"] = action.button
    if action.presses > 1:
        parts["presses"] = action.presses
    if action.kind is ActionKind.KEY and action.seconds:
        parts["hold_s"] = int(action.seconds) if action.seconds.is_integer() else action.seconds
    return parts


def require_words(action: Action, dialect: str, *known: str) -> None:
    """Raises ValueError where `action` has a part that is not among the `known` ones of `dialect`."""
    if unsaid := [name for name in newer_parts(action) if name not in known]:
        raise ValueError(f"the {dialect} dialect has no word for {unsaid[0]} of a {action.kind.value}")
