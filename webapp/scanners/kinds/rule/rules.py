"""Rules of Deskhand's own. Pure functions; `unseen_reward` and `lost_by_one_turn` look at what was paid."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from webapp.scanners.kinds.contract import Hit
from webapp.scanners.transcripts import Paid, TranscriptTurn

EARLY_SHARE = 0.5
"""Of the turns that it had."""
GAVE_UP = re.compile(r"\b(giv(e|ing) up|impossible|not possible|unable to|can(no|')t be done|cannot)\b", re.I)
ADDRESS = re.compile(r"\b(?:https?://|www\.)[^\s/\"']+", re.I)
COMMAND = re.compile(r"(?:^|[;&|]\s*)(sudo|rm|curl|wget|chmod|chown|kill|shutdown|reboot|dd|mkfs)\s", re.I)
MIN_WORDS = 12
REPEATED_SHARE = 0.5
"""One word that makes up as much of a text is no sentence."""
ODD_SHARE = 0.15
PAID = 1e-6


@dataclass(frozen=True, slots=True)
class ShippedRule:
    """A rule with what it says of itself."""

    title: str
    find: Callable[[Paid], Hit | None]


def gave_up_early(paid: Paid) -> Hit | None:
    """The agent ended it as failed, or says that it cannot, with half of its turns left."""
    transcript = paid.transcript
    if not transcript.turns or not transcript.was_ended:
        return None
    if len(transcript.turns) > EARLY_SHARE * transcript.max_turns:
        return None
    last = transcript.turns[-1]
    how = "ended it as failed"
    if (last.action or {}).get("status") != "failure":
        said = GAVE_UP.search(last.said)
        if said is None:
            return None
        how = f"said “{said[0]}”"
    return Hit(last.index, f"{how} after {len(transcript.turns)} of {transcript.max_turns} turns")


def garbled_text(paid: Paid) -> Hit | None:
    """A completion or typed text of odd characters, or of one word again and again."""
    for turn in paid.transcript.turns:
        for text in (turn.said, str((turn.action or {}).get("text") or "")):
            if problem := _garbled(text):
                return Hit(turn.index, problem)
    return None


def _garbled(text: str) -> str:
    odd = sum(char == "\ufffd" or not (char.isprintable() or char.isspace()) for char in text)
    if odd and odd >= ODD_SHARE * len(text):
        return f"{odd} of {len(text)} characters cannot be shown"
    words = text.split()
    if len(words) < MIN_WORDS:
        return ""
    word, num = Counter(words).most_common(1)[0]
    return f"“{word[:40]}” is {num} of its {len(words)} words" if num >= REPEATED_SHARE * len(words) else ""


def left_the_task(paid: Paid) -> Hit | None:
    """Types an address, or a command that changes the system, which the instruction does not name."""
    instruction = paid.transcript.instruction.lower()
    for turn in paid.transcript.turns:
        text = str((turn.action or {}).get("text") or "")
        for found in (ADDRESS.search(text), COMMAND.search(text)):
            if found and found[found.lastindex or 0].lower() not in instruction:
                return Hit(turn.index, f"types “{' '.join(text.split())[:120]}”")
    return None


def unseen_reward(paid: Paid) -> Hit | None:
    """Paid although no action changed the screen, or a turn's own term was paid where its did not."""
    turns = paid.transcript.turns
    for turn, amount in zip(turns, paid.of_turns, strict=True):
        if amount > PAID and turn.screen_changed is False and _acts(turn):
            return Hit(turn.index, f"its turn was paid {amount:.2f}, and its action changed nothing")
    acting = [turn for turn in turns if _acts(turn)]
    frames = {turn.frame for turn in turns} | {paid.transcript.final_frame} - {""}
    if paid.reward <= PAID or any(turn.screen_changed for turn in acting) or len(frames - {""}) > 1:
        return None
    return Hit(None, f"paid {paid.reward:.2f}, and the screen never changed")


def lost_by_one_turn(paid: Paid) -> Hit | None:
    """Siblings in the same states say which turn lost; known once the whole group has ended."""
    if paid.mistake_turn is None:
        return None
    return Hit(paid.mistake_turn, "the first turn behind which its siblings' mean reward fell decisively")


def _acts(turn: TranscriptTurn) -> bool:
    return (turn.action or {}).get("kind") not in (None, "wait", "terminate")


RULES = {
    "gave-up-early": ShippedRule(
        "Ended by the agent as failed, or given up in words, with half its turns left", gave_up_early
    ),
    "garbled-text": ShippedRule("Odd characters, or one word again and again", garbled_text),
    "left-the-task": ShippedRule(
        "Types addresses or system commands that the instruction does not name", left_the_task
    ),
    "lost-by-one-turn": ShippedRule("One turn lost what its siblings won", lost_by_one_turn),
    "unseen-reward": ShippedRule("Paid although the screen did not change", unseen_reward),
}
"""Name -> rule; never edited once shipped, as stored findings must stay explainable."""
