"""A rule of Deskhand."""

from typing import Any, ClassVar, Literal

from pydantic import field_validator

from webapp.scanners.kinds.contract import Hit, Pattern
from webapp.scanners.kinds.rule.rules import RULES
from webapp.scanners.transcripts import Paid


class Rule(Pattern):
    """A rule of Deskhand's own, by its name in `RULES`."""

    title: ClassVar[str] = "A rule of Deskhand"

    kind: Literal["rule"] = "rule"
    rule: str

    @field_validator("rule")
    @classmethod
    def _known(cls, rule: str) -> str:
        if rule not in RULES:
            raise ValueError(f"known ones: {', '.join(RULES)}")
        return rule

    @classmethod
    def choices(cls) -> dict[str, Any]:
        return {"rules": {name: rule.title for name, rule in RULES.items()}}

    def find(self, paid: Paid) -> Hit | None:
        return RULES[self.rule].find(paid)
