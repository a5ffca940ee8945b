"""Trees and terminals of a line: raw under `metadata.deskhand.texts`, and cut in the user's messages.

    [Accessibility Tree]        [Terminal Output]
are Slime-OSWorld's own headings.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any

from training.contracts.observed_text import ObservedText
from training.contracts.types import Observation, Turn
from training.untrusted.packed_texts import MAX_BYTES, NotAText, packed
from webapp.accounts.models import Team
from webapp.lib.columns.storable_text import storable
from webapp.replay.formats.conversation import ReadProblem
from webapp.trajectories.models import Frame
from webapp.trajectories.services.texts import read_text, store_text

HEADINGS = {"accessibility": "[Accessibility Tree]", "terminal": "[Terminal Output]"}
MAX_SHOWN = 4096
CUT = "\n... (truncated)"
"""Both as Slime-OSWorld has them."""
PART = re.compile(
    r"(?:^|\n\n)\[(Accessibility Tree|Terminal Output)\]\n(.*?)(?=\n\n\[[A-Z][A-Za-z ]+\]\n|\Z)", re.S
)
NAMES = {heading.strip("[]"): name for name, heading in HEADINGS.items()}
Keep = Callable[[str], ObservedText]
"""Keeps a raw text, and answers how a turn names it."""


def raw_texts(turns: Iterable[Turn]) -> dict[str, str]:
    """sha256 -> text of everything that was read with these turns, as far as its file is still there."""
    found: dict[str, str] = {}
    for turn in turns:
        for read in (turn.observation.accessibility, turn.observation.terminal):
            if read and read.sha256 and read.sha256 not in found:
                try:
                    found[read.sha256] = read_text(read.sha256)
                except (FileNotFoundError, NotAText):
                    continue
    return found


def sections(observation: Observation, raw: dict[str, str]) -> str:
    """Of a user's message: tree and terminal, cut; "" of a turn that read neither."""
    parts = []
    for name, heading in HEADINGS.items():
        read: ObservedText | None = getattr(observation, name)
        if read and (text := raw.get(read.sha256)):
            cut = text[:MAX_SHOWN] + CUT if len(text) > MAX_SHOWN else text
            parts.append(f"\n\n{heading}\n{cut}")
    return "".join(parts)


def read_sections(message: str) -> dict[str, str]:
    """The texts of a user's message by the field of `Observation`; a tree may have been cut."""
    return {NAMES[name]: text for name, text in PART.findall(message)}


def keeper(team: Team, *, is_kept: bool) -> Keep:
    """Stores texts for a team with `is_kept`, and names them in any case."""

    def keep(raw: str) -> ObservedText:
        text = storable(raw)
        body = text.encode()
        if len(body) > MAX_BYTES:
            raise ReadProblem("metadata.deskhand.texts", f"a text of more than {MAX_BYTES >> 20} MiB")
        sha256 = hashlib.sha256(body).hexdigest()
        if is_kept:
            store_text(team, packed(text), sha256)
        return ObservedText(sha256=sha256, num_chars=len(text))

    return keep


def with_known_texts(turns: list[Turn], own: dict[str, Any], team: Team, keep: Keep) -> list[Turn]:
    """Turns of our own export, without texts that are neither in the line nor here. Raises ReadProblem."""
    raw = own.get("texts", {})
    if not isinstance(raw, dict) or not all(isinstance(text, str) for text in raw.values()):
        raise ReadProblem("metadata.deskhand.texts", "not texts by their sha256")
    kept = {sha256: keep(text).sha256 for sha256, text in raw.items()}
    named = {read.sha256 for turn in turns for read in _reads(turn) if read.sha256}
    here = Frame.objects.filter(team=team, sha256__in=named - kept.keys(), width=0)
    known = {sha256 for sha256, stored in kept.items() if sha256 == stored} | {""}
    known |= set(here.values_list("sha256", flat=True))
    return [_with_known(turn, known) for turn in turns]


def _reads(turn: Turn) -> list[ObservedText]:
    seen = turn.observation
    return [read for read in (seen.accessibility, seen.terminal) if read]


def _with_known(turn: Turn, known: set[str]) -> Turn:
    seen = turn.observation
    unknown: dict[str, Any] = {
        name: None for name in HEADINGS if (read := getattr(seen, name)) and read.sha256 not in known
    }
    if seen.marks and seen.marks.plain:  # lines carry the picture that the policy saw, alone
        unknown["marks"] = seen.marks.model_copy(update={"plain": ""})
    return turn.model_copy(update={"observation": seen.model_copy(update=unknown)}) if unknown else turn
