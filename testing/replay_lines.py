"""Lines of the replay format in the variants that other programs write."""

import json
from base64 import b64encode
from io import BytesIO

from PIL import Image

from webapp.lib.statements.json_keys import text_of
from webapp.replay.models import ReplayEntry


def picture(shade: int = 0, form: str = "PNG") -> bytes:
    out = BytesIO()
    Image.new("RGB", (64, 48), (shade % 256, shade // 256 % 256, 7)).save(out, form)
    return out.getvalue()


PNG = b64encode(picture()).decode()


URL = f"data:image/png;base64,{PNG}"


ASKED = "[Domain]\nmenu\n\n[Task]\nOpen the reports\n\n[Accessibility Tree]\nbutton  Reports"


CALL = 'Action: go\n<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [12, 40]}}\n</tool_call>'  # noqa: E501


USER = {"role": "user", "content": f"<image>\n{ASKED}"}


SAID = {"role": "assistant", "content": CALL}


SYSTEM = {"role": "system", "content": "You operate a computer."}


TEXT_PART = {"type": "text", "text": ASKED}


def asked(content) -> list[dict]:
    return [SYSTEM, {"role": "user", "content": content}, SAID]


VARIANTS = {
    "data URLs": {"messages": [SYSTEM, USER, SAID], "images": [URL]},
    "bare base64": {"messages": [SYSTEM, USER, SAID], "images": [PNG]},
    "JPEG": {"messages": [USER, SAID], "images": [b64encode(picture(form="JPEG")).decode()]},
    "conversations": {"conversations": [SYSTEM, USER, SAID], "images": [URL]},
    "from and value": {
        "conversations": [{"from": "human", "value": USER["content"]}, {"from": "gpt", "value": CALL}],
        "images": [URL],
    },
    "images as bytes and path": {"messages": [USER, SAID], "images": [{"bytes": PNG, "path": "a.png"}]},
    "one image": {"messages": [USER, SAID], "image": URL},
    "text only, images null": {"messages": asked(ASKED), "images": None},
    "text only, no images": {"messages": asked(ASKED)},
    "list content": {"messages": asked([{"type": "image"}, TEXT_PART]), "images": [URL]},
    "image_url inside": {"messages": asked([{"type": "image_url", "image_url": {"url": URL}}, TEXT_PART])},
    "image inside": {"messages": asked([TEXT_PART, {"type": "image", "image": URL}]), "images": None},
    "masked turn": {"messages": [USER, {**SAID, "step_loss_mask": 0}, USER, SAID], "images": [URL, URL]},
    "unchanged screen": {
        "messages": [USER, SAID, {"role": "user", "content": "[Last Action Result]\nok"}, SAID],
        "images": [URL],
    },
    "result in a tool's message": {
        "messages": [USER, SAID, {"role": "tool", "content": "<image>\nok"}, SAID],
        "images": [URL, URL],
    },
    "messages and metadata as JSON text": {
        "messages": json.dumps([USER, SAID]),
        "images": json.dumps([URL]),
        "metadata": json.dumps({"domain": "menu"}),
    },
    "pyautogui": {
        "messages": [USER, {"role": "assistant", "content": "pyautogui.click(12, 40)"}],
        "images": [URL],
    },
}


def shown(entry: ReplayEntry) -> list:
    columns = (
        "index",
        "frame",
        "width",
        "height",
        "action",
        "observation_text",
        "is_context",
        text_of("completion__text"),
    )
    return list(entry.trajectory.turns.values_list(*columns))
