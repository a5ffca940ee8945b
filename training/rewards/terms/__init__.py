"""Every reward term by its versioned id. A term is never edited, only followed by a new version."""

from training.rewards.term import TermFunction
from training.rewards.terms.always_zero import TERMS as NOT_RECORDED
from training.rewards.terms.behaviour import TERMS as BEHAVIOUR
from training.rewards.terms.format import TERMS as FORMAT
from training.rewards.terms.outcome import TERMS as OUTCOME
from training.rewards.terms.slime_osworld import TERMS as SLIME_OSWORLD

TABLES = (OUTCOME, FORMAT, BEHAVIOUR, SLIME_OSWORLD, NOT_RECORDED)
TERMS: dict[str, TermFunction] = {name: term for table in TABLES for name, term in table.items()}
