"""The kinds of scanners."""

from webapp.scanners.kinds.actions.kind import ActionSequence
from webapp.scanners.kinds.contract import Kind
from webapp.scanners.kinds.loop.kind import Loop
from webapp.scanners.kinds.model.kind import ModelQuestion
from webapp.scanners.kinds.rule.kind import Rule
from webapp.scanners.kinds.still.kind import StillScreen
from webapp.scanners.kinds.text.kind import TextPattern

KINDS: dict[str, type[Kind]] = {
    kind.model_fields["kind"].default: kind
    for kind in (TextPattern, ActionSequence, Loop, StillScreen, Rule, ModelQuestion)
}
"""Value of `kind` -> its class, in the order of the form."""
