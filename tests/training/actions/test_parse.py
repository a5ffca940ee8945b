"""Completion text becomes exactly the action that it says, or a visible error; never anything else."""

import pytest

from training.actions.coordinates import convert_point, off_screen_error, resized_size, space_size
from training.actions.parse_completion import parse_completion
from training.actions.write_completion import completion_text, format_action
from training.contracts.config import CoordinateSpace, PromptConfig
from training.contracts.types import Action, ActionKind

SCREEN = (512, 384)
CLICK = Action(kind=ActionKind.CLICK, x=179, y=276)
SAVE = Action(kind=ActionKind.KEY, keys=("ctrl", "s"))
DONE = Action(kind=ActionKind.TERMINATE, status="success")
FAIL = Action(kind=ActionKind.TERMINATE, status="failure")


def parse(text: str, **settings):
    return parse_completion(text, screen=SCREEN, **settings)


def action_of(text: str, **settings) -> Action:
    parsed = parse(text, **settings)
    assert parsed.error is None
    return parsed.action


def error_of(text: str, **settings) -> str:
    parsed = parse(text, **settings)
    assert parsed.action is None
    return parsed.error


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('{"action":"left_click","coordinate":[350,720]}', CLICK),
        ('{"action": "click", "coordinate": [350.0, 720]}', CLICK),
        ('{"action":"right_click","coordinate":[0,0]}', Action(kind="right_click", x=0, y=0)),
        ('{"action":"middle_click","coordinate":[1000,1000]}', Action(kind="middle_click", x=511, y=383)),
        ('{"action":"double_click","coordinate":[350,720]}', Action(kind="double_click", x=179, y=276)),
        ('{"action":"triple_click","coordinate":[350,720]}', Action(kind="triple_click", x=179, y=276)),
        ('{"action":"mouse_move","coordinate":[350,720]}', Action(kind="move", x=179, y=276)),
        ('{"action":"left_click_drag","coordinate":[350,720]}', Action(kind="drag", to_x=179, to_y=276)),
        (
            '{"action":"left_click_drag","start_coordinate":[0,0],"coordinate":[350,720]}',
            Action(kind="drag", x=0, y=0, to_x=179, to_y=276),
        ),
        (
            '{"action":"left_click_drag","coordinate":[0,0],"end_coordinate":[350,720]}',
            Action(kind="drag", x=0, y=0, to_x=179, to_y=276),
        ),
        (
            '{"action":"left_click_drag","start_coordinate":[0,0],"end_coordinate":[350,720]}',
            Action(kind="drag", x=0, y=0, to_x=179, to_y=276),
        ),
        ('{"action":"type","text":"</s>"}<|im_end|>\n<|endoftext|>', Action(kind="type", text="</s>")),
        ('{"action":"key","keys":["apps"]}', Action(kind="key", keys=("Menu",))),
        ('{"action":"scroll","direction":"down"}', Action(kind="scroll", scroll_y=3)),
        (
            '{"action":"scroll","coordinate":[0,0],"direction":"up","amount":5}',
            Action(kind="scroll", x=0, y=0, scroll_y=-5),
        ),
        ('{"action":"scroll","pixels":-7}', Action(kind="scroll", scroll_y=7)),
        ('{"action":"scroll","pixels":-700}', Action(kind="scroll", scroll_y=50)),
        ('{"action":"hscroll","pixels":4}', Action(kind="scroll", scroll_x=4)),
        ('{"action":"type","text":"red fox\\n"}', Action(kind="type", text="red fox\n")),
        ('{"action":"type","text":"<done/> é 漢"}', Action(kind="type", text="<done/> é 漢")),
        ('{"action":"key","keys":["Down"]}', Action(kind="key", keys=("Down",))),
        ('{"action":"key","keys":["CTRL","s"]}', SAVE),
        ('{"action":"key","keys":"ctrl+s"}', SAVE),
        ('{"action":"key","keys":"ctrl++"}', Action(kind="key", keys=("ctrl", "+"))),
        ('{"action":"hotkey","keys":["ctrl","s"]}', SAVE),
        ('{"action":"key","keys":["enter"]}', Action(kind="key", keys=("Return",))),
        ('{"action":"wait","time":2}', Action(kind="wait", seconds=2.0)),
        ('{"action":"wait"}', Action(kind="wait", seconds=1.0)),
        ('{"action":"terminate","status":"success"}', DONE),
        ('{"action":"terminate","status":"failure"}', FAIL),
        ('{"action":"terminate"}', DONE),
        ('{"action":"done"}', DONE),
        ('{"action":"fail"}', FAIL),
        ('{"action":"answer","text":"42"}', Action(kind="terminate", status="success", text="42")),
    ],
)
def test_json_says_an_action(text, action):
    assert action_of(text) == action
    assert action_of(text, dialect="json") == action


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name":"computer_use","arguments":{"action":"left_click","coordinate":[350,720]}}</tool_call>',
        '<tool_call>\n{"name": "computer_use", "arguments": {"action": "click", "coordinate": [350, 720]}}\n',
        'Action: Click it.\n<tool_call>{"action":"left_click","coordinate":[350,720]}</tool_call><|im_end|>',
        '{"arguments":{"action":"left_click","coordinate":[350,720]}}',
        "pyautogui.click(350, 720)",
        "pyautogui.click(x=350, y=720)",
        "pyautogui.click([350, 720])",
        "pyautogui.click(350, 720, duration=0.5)",
        "I see it.\n```python\nimport pyautogui\nimport time\npyautogui.click(350, 720)\n```",
        "```\npyautogui.leftClick(350, 720)\n```",
    ],
)
def test_wrapped_forms_say_the_same_click(text):
    assert action_of(text) == CLICK


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("pyautogui.click()", Action(kind="click")),
        ("pyautogui.click(350, 720, 2)", Action(kind="double_click", x=179, y=276)),
        ("pyautogui.click(350, 720, clicks=3)", Action(kind="triple_click", x=179, y=276)),
        ("pyautogui.click(350, 720, button='right')", Action(kind="right_click", x=179, y=276)),
        ("pyautogui.doubleClick(350, 720)", Action(kind="double_click", x=179, y=276)),
        ("pyautogui.moveTo(350, 720)", Action(kind="move", x=179, y=276)),
        ("pyautogui.dragTo(350, 720, 1, button='left')", Action(kind="drag", to_x=179, to_y=276)),
        ("pyautogui.write('red fox', interval=0.1)", Action(kind="type", text="red fox")),
        ("pyautogui.typewrite(message='a')", Action(kind="type", text="a")),
        ("pyautogui.press('enter')", Action(kind="key", keys=("Return",))),
        ("pyautogui.press(['down'])", Action(kind="key", keys=("Down",))),
        ("pyautogui.hotkey('ctrl', 's')", SAVE),
        ("pyautogui.hotkey(['ctrl', 's'])", SAVE),
        ("pyautogui.scroll(-3)", Action(kind="scroll", scroll_y=3)),
        ("pyautogui.scroll(5, 350, 720)", Action(kind="scroll", x=179, y=276, scroll_y=-5)),
        ("pyautogui.hscroll(2)", Action(kind="scroll", scroll_x=2)),
        ("time.sleep(2)", Action(kind="wait", seconds=2.0)),
        ("WAIT", Action(kind="wait", seconds=1.0)),
        ("```DONE```", DONE),
        ("fail", FAIL),
    ],
)
def test_pyautogui_text_says_an_action(text, action):
    assert action_of(text) == action
    assert action_of(text, dialect="pyautogui") == action


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("<action>sendkey ctrl-s</action>", SAVE),
        ("<action>sendkey ret</action>", Action(kind="key", keys=("Return",))),
        ("<action>sendkey -</action>", Action(kind="key", keys=("-",))),
        ("<action>type red fox</action>", Action(kind="type", text="red fox")),
        ("<action>typeline dir</action>", Action(kind="type", text="dir\n")),
        ("<action>wait 2.5</action>", Action(kind="wait", seconds=2.5)),
        ("All good. <done/>", DONE),
        ("<done />", DONE),
    ],
)
def test_keyboard_tags_say_an_action(text, action):
    assert action_of(text) == action
    assert action_of(text, dialect="keyboard") == action


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty"),
        ("<|im_end|>", "empty"),
        ("I will click the red button at 350, 720", "no action in a known form"),
        ("click [350, 720]", "no action in a known form"),
        ("press ctrl now", "no action in a known form"),
        ("{}", 'no "action"'),
        ("[1, 2]", "no action"),
        ('{"action":"fly"}', "unknown action 'fly'"),
        ('{"action":7}', 'no "action"'),
        ('{"name":"bash","arguments":{"command":"rm -rf /"}}', "unknown tool 'bash'"),
        (
            '{"action":"left_click_drag","start_coordinate":[0,0],"coordinate":[1,1],"end_coordinate":[2,2]}',
            "one start and one end",
        ),
        ('{"action":"left_click","coordinate":350}', "must be [x, y]"),
        ('{"action":"left_click","coordinate":[350]}', "must be [x, y]"),
        ('{"action":"left_click","coordinate":[true,720]}', "must be a number"),
        ('{"action":"left_click","coordinate":[NaN,720]}', "NaN is not a number"),
        ('{"action":"left_click","coordinate":[1e400,720]}', "out of range"),
        ('{"action":"left_click","coordinate":[350,720],"button":"left"}', "takes no 'button'"),
        ('{"action":"left_click","coordinate":[350,720]', "cannot be read"),
        ('{"action":"wait"}{"action":"wait"}', "more than one action"),
        ('{"action":"type"}', "text must be"),
        ('{"action":"type","text":""}', "text must be"),
        ('{"action":"type","text":"\\u0000"}', "no keyboard has"),
        ('{"action":"type","text":"\\ud800"}', "no keyboard has"),
        ('{"action":"key"}', "list of key names"),
        ('{"action":"key","keys":[]}', "1 to 5 keys"),
        ('{"action":"key","keys":["launch_missiles"]}', "unknown key"),
        ('{"action":"key","keys":[7]}', "key names"),
        ('{"action":"wait","time":-1}', "not be negative"),
        ('{"action":"wait","time":1000000}', "out of range"),
        ('{"action":"scroll","direction":"sideways"}', "direction must be"),
        ('{"action":"terminate","status":"maybe"}', "success or failure"),
        ("<tool_call>click</tool_call>", "no JSON object"),
        ('{"action":' + "[" * 30_000, "JSON"),
        ("pyautogui.click(350, 720)\npyautogui.click(1, 2)", "more than one action"),
        ("import pyautogui", "no call"),
        ("import pyautogui as p\np.click(1, 2)", "only calls are allowed"),
        ("pyautogui.click(__import__('os').getpid(), 2)", "literal"),
        ("pyautogui.click(1 + 1, 2)", "literal"),
        ("pyautogui.click(*[350, 720])", "literal"),
        ("pyautogui.click(350)", "needed together"),
        ("pyautogui.click(350, 720, nonsense=1)", "takes no 'nonsense'"),
        ("pyautogui.click(350, 720, x=3)", "takes no 'x'"),
        ("pyautogui.click(350, 720, clicks=101)", "clicks must be"),
        ("pyautogui.click(", "cannot be read"),
        ('{"action":"mouse_move"}', "needs a coordinate"),
        ('{"action":"left_click","coordinate":["left","720"]}', "must be a number"),
        ("pyautogui.click(350, 720)\npyautogui.click(", "cannot be read"),
        ("pyautogui.hold('a')", "pyautogui.hold is not allowed"),
        ("pyautogui.alert('a')", "not allowed"),
        ("pyautogui.__class__.__init__()", "only pyautogui"),
        ("pyautogui.press('a', presses=300)", "presses"),
        ("pyautogui.press(['a', 'b'])", "more than one action: 2"),
        ("pyautogui.mouseDown(button='side')", "button"),
        ("x = pyautogui.click(1, 2)\npyautogui.x", "only calls are allowed"),
        ("for x in (1, 2):\n    pyautogui.click(x, x)", "literal"),
        ("```python\nfor x in (1, 2):\n    pyautogui.click(x, x)\n```", "only calls are allowed"),
        ("pyautogui.write(f'{1}')", "literal"),
        ("pyautogui.write(b'a')", "literal"),
        ("<action>fly</action>", "unknown verb"),
        ("<action>sendkey</action>", "key names"),
        ("<action>wait long</action>", "number of seconds"),
        ("<action>wait nan</action>", "out of range"),
        ("<action>type a", "not closed"),
        ("<action>type a</action><done/>", "more than one action"),
        ("x" * 50_000, "longer than"),
    ],
)
def test_what_says_no_action_is_an_error_that_says_why(text, part):
    assert part in error_of(text)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("json", "pyautogui.click(1, 2)"),
        ("json", "<done/>"),
        ("json", "DONE"),
        ("pyautogui", '{"action":"wait"}'),
        ("keyboard", '{"action":"left_click","coordinate":[1,2]}'),
    ],
)
def test_a_dialect_setting_refuses_the_other_dialects(dialect, text):
    assert "no action in a known form" in error_of(text, dialect=dialect)


def test_the_words_before_the_action_are_its_thought():
    assert parse('I see it.\n<tool_call>{"action":"wait"}</tool_call>').thought == "I see it."
    assert parse("I see it.\npyautogui.click(1, 2)").thought == "I see it."


def test_the_dialect_that_begins_first_decides():
    assert parse('{"action":"type","text":"x\\npyautogui.click(1, 2)"}').dialect == "json"
    assert parse("""pyautogui.write('{"action":"wait"}')""").action.text == '{"action":"wait"}'


@pytest.mark.parametrize(
    ("space", "image", "point", "pixel"),
    [
        (CoordinateSpace.SCREEN, None, (350, 200), (350, 200)),
        (CoordinateSpace.PERMILLE, None, (0, 0), (0, 0)),
        (CoordinateSpace.PERMILLE, None, (1000, 1000), (511, 383)),
        (CoordinateSpace.PERMILLE, None, (500, 500), (256, 192)),
        (CoordinateSpace.RESIZED, (256, 192), (255, 191), (511, 383)),
        (CoordinateSpace.RESIZED, (256, 192), (100, 50), (200, 100)),
    ],
)
def test_every_coordinate_space_means_screen_pixels(space, image, point, pixel):
    text = f'{{"action":"left_click","coordinate":[{point[0]},{point[1]}]}}'
    action = action_of(text, space=space, image=image)
    assert (action.x, action.y) == pixel


def test_the_resized_space_needs_the_size_of_the_image():
    with pytest.raises(ValueError, match="resized needs the size"):
        parse("DONE", space=CoordinateSpace.RESIZED)


def test_a_point_off_the_screen_stays_off_and_is_refused():
    action = action_of('{"action":"left_click","coordinate":[1200,-3]}')
    assert off_screen_error(action, SCREEN) == "(613, -1) is off the 512x384 screen"
    assert off_screen_error(CLICK, SCREEN) is None
    assert off_screen_error(Action(kind="drag", x=1, y=1, to_x=512, to_y=1), SCREEN)
    assert off_screen_error(SAVE, SCREEN) is None


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (Action(kind="key", keys=("Down",)), '{"action":"key","keys":["Down"]}'),
        (Action(kind="type", text="red fox"), '{"action":"type","text":"red fox"}'),
        (CLICK, '{"action":"left_click","coordinate":[350,720]}'),
        (DONE, '{"action":"terminate","status":"success"}'),
    ],
)
def test_demonstrations_are_written_as_compact_json(action, text):
    assert completion_text(action, SCREEN) == text


ALL_KINDS = [
    CLICK,
    *(
        Action(kind=kind, x=179, y=276)
        for kind in ("double_click", "triple_click", "right_click", "middle_click", "move")
    ),
    Action(kind="drag", x=10, y=20, to_x=30, to_y=40),
    Action(kind="drag", to_x=30, to_y=40),
    Action(kind="scroll", x=5, y=6, scroll_y=3),
    Action(kind="scroll", scroll_x=-2),
    Action(kind="type", text='it\'s "so"\nüber'),
    SAVE,
    Action(kind="key", keys=("Page_Up",)),
    Action(kind="wait", seconds=1.5),
    DONE,
    FAIL,
]


def is_sayable(action: Action, dialect: str) -> bool:
    if dialect == "keyboard":
        return action.kind in (ActionKind.TYPE, ActionKind.KEY, ActionKind.WAIT) or action == DONE
    return True


DIALECTS = ["json", "pyautogui", "keyboard"]
SAYABLE = [(dialect, action) for dialect in DIALECTS for action in ALL_KINDS if is_sayable(action, dialect)]
UNSAYABLE = [
    (dialect, action) for dialect in DIALECTS for action in ALL_KINDS if not is_sayable(action, dialect)
]


@pytest.mark.parametrize(("dialect", "action"), UNSAYABLE)
def test_a_dialect_without_a_word_for_an_action_says_so(dialect, action):
    with pytest.raises(ValueError, match=r"no word|needs json"):
        format_action(action, dialect, CoordinateSpace.SCREEN, SCREEN)


@pytest.mark.parametrize(("dialect", "action"), SAYABLE)
def test_what_a_dialect_writes_reads_back_as_the_same_action(action, dialect):
    text = format_action(action, dialect, CoordinateSpace.SCREEN, SCREEN)
    assert action_of(text, dialect=dialect, space=CoordinateSpace.SCREEN) == action


def test_demonstrations_follow_the_prompt_setting():
    prompt = PromptConfig(dialect="pyautogui", coordinate_space="screen")
    assert completion_text(CLICK, SCREEN, prompt) == "pyautogui.click(179, 276)"


def test_permille_rounding_moves_a_point_by_less_than_three_pixels():
    for x in range(512):
        permille = completion_text(Action(kind="click", x=x, y=0), SCREEN)
        assert abs(action_of(permille).x - x) <= 3


@pytest.mark.parametrize(
    ("screen", "bounds", "size"),
    [
        ((1920, 1080), (65536, 1003520), (1312, 736)),
        ((512, 384), (1024, 49152), (256, 192)),
        ((100, 100), (65536, 1003520), (256, 256)),
    ],
)
def test_resized_size_is_the_processors(screen, bounds, size):
    assert resized_size(screen, *bounds) == size


def test_conversion_is_one_to_one_between_equal_grids():
    size = space_size(CoordinateSpace.SCREEN, SCREEN)
    assert [convert_point((x, x), size, SCREEN)[0] for x in range(-5, 600)] == list(range(-5, 600))
