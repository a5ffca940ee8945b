"""The importer of replay entries reads every action that the exporter writes."""

from hypothesis import assume, given, settings

from testing.training.every_action import EVERY_KIND, is_answer
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.types import ActionKind
from webapp.replay.formats.messages import read_action
from webapp.replay.formats.slime_export import CannotExport, action_text


@settings(max_examples=400)
@given(EVERY_KIND)
def test_the_importer_reads_what_the_exporter_writes(action):
    assume(not is_answer(action))  # the format ends with a status alone
    try:
        text = action_text(action, "here")
    except CannotExport:
        assert (
            action.kind is ActionKind.SCROLL
            and (action.scroll_x or not action.scroll_y)
            or action.kind in (ActionKind.DRAG, ActionKind.PASTE)
        )
        return
    found = read_action(text, "here").actions
    if len(found) == 1:
        assert found == (action,)
    else:  # as pyautogui says it by several calls
        assert newer_parts(action) or len(action.keys) > 1
        kinds = [one.kind for one in found]
        assert kinds.count(ActionKind.KEY_DOWN) >= len(action.modifiers)
        assert action.kind in (*kinds, ActionKind.KEY)
