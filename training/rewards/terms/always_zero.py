"""Reward terms of Slime-OSWorld that are always 0 here, and why; kept so that its breakdown is whole."""

from training.rewards.term import ScoredTrajectory, TermFunction, TermValue


def _always_0(why: str) -> TermFunction:
    def term(trajectory: ScoredTrajectory) -> TermValue:
        return TermValue(0.0, why)

    return term


TERMS: dict[str, TermFunction] = {
    "a11y_grounding.v1": _always_0("no accessibility tree is recorded"),
    "a11y_change.v1": _always_0("no accessibility tree is recorded"),
    "terminal_change.v1": _always_0("no terminal text is recorded"),
    "fallback_penalty.v1": _always_0("the parser never guesses"),
}
