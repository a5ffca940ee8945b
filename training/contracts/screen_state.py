"""When two turns began in the same state, as far as the policy can see."""

from training.contracts.types import Observation


def state_of(observation: Observation, *, shows_screen: bool) -> str:
    """Digest of the screen, or of tree and terminal where the policy reads these alone; "" = unknown.

    A clock or a cursor that blinks makes two screens of one state, so that fewer are shared.
    """
    tree, terminal = (
        part.sha256 if part else "" for part in (observation.accessibility, observation.terminal)
    )
    return state_of_digests(observation.sha256, tree, terminal, shows_screen=shows_screen)


def state_of_digests(frame: str, tree: str, terminal: str, *, shows_screen: bool) -> str:
    """The same from what was stored."""
    read = f"{tree}/{terminal}" if tree or terminal else ""
    return frame if shows_screen or not read else read
