"""Actions as the text a model writes: SFT data and demonstrations.

What it writes parses back to the same action, up to the rounding of the coordinate space.
"""

from functools import partial

from training.actions.coordinates import Size, model_point
from training.actions.dialects.registry import find_dialect
from training.contracts.config import CoordinateSpace, PromptConfig
from training.contracts.types import Action


def format_action(
    action: Action,
    dialect: str = "json",
    space: CoordinateSpace = CoordinateSpace.PERMILLE,
    screen: Size = (512, 384),
    image: Size | None = None,
    *,
    grid: int = 1,
) -> str:
    """`action` (screen pixels) as a completion in `dialect`; "auto" writes JSON.

    `image` is the resized image's size, needed only for the resized space. `grid`: permille coordinates are
    multiples of it.
    Raises ValueError when the dialect cannot say the action (the keyboard dialect has no pointer).
    """
    point = partial(model_point, space=space, screen=screen, image=image, grid=grid)
    return find_dialect(dialect).write(action, point)


def completion_text(
    action: Action, screen: Size, prompt: PromptConfig | None = None, image: Size | None = None
) -> str:
    """The completion that a policy of `prompt` would write to do `action`."""
    prompt = prompt or PromptConfig()
    grid = prompt.permille_grid
    return format_action(action, prompt.dialect, prompt.coordinate_space, screen, image, grid=grid)
