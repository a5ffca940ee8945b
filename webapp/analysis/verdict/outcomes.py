"""What came of a run by its evaluations, in a word."""

from collections.abc import Sequence
from enum import StrEnum

from training.statistics.paired_statistics import direction
from webapp.analysis.evaluations.success_pairs import SuccessLine, is_sharper

SOLVED, SOLVED_LOW = 0.9, 0.8
"""Success after, and the lower end of its interval, from which a task set is solved."""
COLLAPSED_TO = 0.5
"""What is left of success, at most, when a run collapsed."""
AT_LIMIT_SHARE, AT_LIMIT_LEAST = 0.2, 5
"""Of the states that were reached, those at which a limit ended the trajectory, and how many at least."""


class RunOutcome(StrEnum):
    RUNNING = "running"
    UNKNOWN = "unknown"
    """Too few evaluations to tell."""
    LEARNED = "learned"
    PARTLY = "partly"
    """Partial scores rose, full ones did not."""
    SHARPENED = "sharpened"
    FLAT = "flat"
    WORSE = "worse"
    COLLAPSED = "collapsed"
    SOLVED = "solved"
    BABBLES = "babbles"
    """It reaches the state and does not stop."""

    @property
    def label(self) -> str:
        return LABELS[self]

    @property
    def tone(self) -> str:
        """Green for a success alone; grey for what chance alone can do."""
        return TONES.get(self, "neutral")

    @property
    def icon(self) -> str:
        return "alert" if self.tone in ("bad", "warning") else "check" if self.tone == "good" else "info"


R = RunOutcome
LABELS = {
    R.RUNNING: "Running",
    R.UNKNOWN: "Too few evaluations to tell",
    R.LEARNED: "Learned",
    R.PARTLY: "Learned in part",
    R.SHARPENED: "Sharpened, not learned",
    R.FLAT: "Flat: no change beyond chance",
    R.WORSE: "Got worse",
    R.COLLAPSED: "Collapsed",
    R.SOLVED: "Solved",
    R.BABBLES: "Solves, but does not stop",
}
TONES = {
    R.RUNNING: "active",
    R.LEARNED: "good",
    R.SOLVED: "good",
    R.SHARPENED: "warning",
    R.WORSE: "bad",
    R.COLLAPSED: "bad",
    R.BABBLES: "bad",
}


def outcome_of_run(lines: Sequence[SuccessLine], *, is_final: bool) -> RunOutcome:
    """By greedy success where it was measured; a fall counts at either temperature."""
    known = [line for line in lines if line.gain is not None and line.p is not None and not line.missing_text]
    if not known:
        return R.UNKNOWN if is_final else R.RUNNING
    if any(_is_at_limit(line) for line in known):
        return R.BABBLES
    fallen = [line for line in known if _moved(line) < 0]
    if fallen:
        return R.COLLAPSED if any(_is_collapse(line) for line in fallen) else R.WORSE
    greedy = next((line for line in known if line.newest.is_greedy), None)
    if _is_solved(greedy or known[0]):
        return R.SOLVED
    if greedy is None:
        return R.UNKNOWN if _moved(known[0]) else _by_scores(known, known[0], R.UNKNOWN, R.FLAT)
    if _moved(greedy) > 0:
        return R.LEARNED
    sampled = next((line for line in known if not line.newest.is_greedy), None)
    is_surer = sampled is not None and is_sharper(sampled.gain, sampled.p, greedy.gain, greedy.p)
    return _by_scores(known, greedy, R.PARTLY, R.SHARPENED if is_surer else R.FLAT)


def _by_scores(
    known: Sequence[SuccessLine], telling: SuccessLine, risen: RunOutcome, otherwise: RunOutcome
) -> RunOutcome:
    """What partial scores say where as many tasks are solved; a fall counts at either temperature."""
    fallen = [line.scores for line in known if line.scores and line.scores.moved < 0]
    if fallen:
        is_collapse = any(scores.after <= COLLAPSED_TO * scores.before for scores in fallen)
        return R.COLLAPSED if is_collapse else R.WORSE
    return risen if telling.scores and telling.scores.moved > 0 else otherwise


def _moved(line: SuccessLine) -> int:
    """See `direction`."""
    assert line.gain is not None
    assert line.p is not None
    return direction(line.gain, line.p)


def _is_collapse(line: SuccessLine) -> bool:
    assert line.before is not None
    assert line.after is not None
    return line.after.value <= COLLAPSED_TO * line.before.value


def _is_solved(line: SuccessLine) -> bool:
    return line.after is not None and line.after.value >= SOLVED and line.after.low >= SOLVED_LOW


def _is_at_limit(line: SuccessLine) -> bool:
    number = line.newest.num_solved_at_limit or 0
    return number >= AT_LIMIT_LEAST and number > AT_LIMIT_SHARE * line.newest.num_success
