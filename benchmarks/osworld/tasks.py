"""One task in OSWorld's schema per family of evaluators that our desktops support, each with its oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from training.contracts.types import Action, ActionKind, Task

HOME = "/home/user"
SCREEN = (640, 480)
DONE = Action(kind=ActionKind.TERMINATE, status="success")
GIVE_UP = Action(kind=ActionKind.TERMINATE, status="failure")


@dataclass(frozen=True, slots=True)
class Family:
    """A task and what it proves."""

    name: str
    instruction: str
    evaluator: dict[str, Any]
    types: str = ""
    """What the oracle types into the terminal that the setup opens, or into the open editor."""
    files: dict[str, str] = field(default_factory=dict)
    """Name in HOME -> document of `benchmarks.osworld.documents`, or "=text"."""
    gold: dict[str, str] = field(default_factory=dict)
    """Name of a `cloud_file` -> the same; laid into the folder of downloads."""
    editor: str = ""
    """File in HOME that the editor shows instead of the terminal."""
    ending: Action = DONE


def vm_file(name: str) -> dict[str, Any]:
    return {"type": "vm_file", "path": f"{HOME}/{name}", "dest": name}


def cloud_file(name: str) -> dict[str, Any]:
    return {"type": "cloud_file", "path": f"https://example.org/osworld/{name}", "dest": f"gold-{name}"}


def command(text: str) -> dict[str, Any]:
    return {"type": "vm_command_line", "command": text, "shell": True}


def rule(rules: Any) -> dict[str, Any]:
    return {"type": "rule", "rules": rules}


def check(func: str, result: Any, expected: Any = None, **others: Any) -> dict[str, Any]:
    made = {"func": func, "result": result, **others}
    return made if expected is None else {**made, "expected": expected}


def equals(path: list[str], value: Any) -> dict[str, Any]:
    return rule({"expect": [{"key": path, "method": "eq", "ref": value}]})


def xpath_text(role: str, text: str) -> dict[str, Any]:
    return rule([{"xpath": f"//*[local-name()='{role}']", "text": text, "exact": False}])


FAMILIES = (
    Family(
        "text file",
        'Write "blue lamp" into the note and save it.',
        check("compare_text_file", vm_file("note.txt"), cloud_file("note.txt")),
        types="blue lamp",
        files={"note.txt": "=\n"},
        gold={"note.txt": "=blue lamp\n"},
        editor="note.txt",
    ),
    Family(
        "command output",
        "Make a folder named archive.",
        check("exact_match", command("ls -d archive"), rule({"expected": "archive\n"})),
        types="mkdir archive\n",
    ),
    Family(
        "included and excluded words",
        "Make the script executable for its owner.",
        check(
            "check_include_exclude",
            command("stat -c %A run.sh"),
            rule({"include": ["rwx"], "exclude": ["?"]}),
        ),
        types="chmod 755 run.sh\n",
        files={"run.sh": "=true\n"},
    ),
    Family(
        "json",
        "Set the theme to dark in settings.json.",
        check("check_json", vm_file("settings.json"), equals(["theme"], "dark")),
        types="sed -i s/light/dark/ settings.json\n",
        files={"settings.json": '={"theme": "light"}'},
    ),
    Family(
        "csv",
        "Add Ada, aged 36, to people.csv.",
        check("check_csv", vm_file("people.csv"), rule({"expect": [{"name": "Ada", "age": "36"}]})),
        types="echo Ada,36 >> people.csv\n",
        files={"people.csv": "=name,age\nBob,40\n"},
    ),
    Family(
        "folder listing",
        "Move the picture to the folder named art.",
        check(
            "check_moved_jpgs",
            {"type": "list_directory", "path": f"{HOME}/art"},
            rule({"expected": ["chair.jpg", "lamp.jpg"]}),
        ),
        types="mv lamp.jpg art/\n",
        files={"lamp.jpg": "=x", "art/chair.jpg": "=x"},
    ),
    Family(
        "accessibility tree",
        'Write "blue lamp" into the editor.',
        check("check_accessibility_tree", {"type": "accessibility_tree"}, xpath_text("text", "blue lamp")),
        types="blue lamp",
        files={"note.txt": "="},
        editor="note.txt",
    ),
    Family(
        "text document (docx)",
        "Replace report.docx by final.docx.",
        check("compare_docx_files", vm_file("report.docx"), cloud_file("final.docx")),
        types="mv final.docx report.docx\n",
        files={"report.docx": "draft.docx", "final.docx": "final.docx"},
        gold={"final.docx": "final.docx"},
    ),
    Family(
        "spreadsheet (xlsx)",
        "Replace prices.xlsx by new.xlsx.",
        check(
            "compare_table",
            vm_file("prices.xlsx"),
            cloud_file("new.xlsx"),
            options={"rules": [{"type": "sheet_data", "sheet_idx0": 0, "sheet_idx1": "EI0"}]},
        ),
        types="mv new.xlsx prices.xlsx\n",
        files={"prices.xlsx": "old.xlsx", "new.xlsx": "new.xlsx"},
        gold={"new.xlsx": "new.xlsx"},
    ),
    Family(
        "cell of a spreadsheet",
        "Replace prices.xlsx by new.xlsx.",
        check(
            "literal_match",
            {
                "type": "content_from_vm_file",
                "path": f"{HOME}/prices.xlsx",
                "file_type": "xlsx",
                "file_content": "last_row",
            },
            rule(["chair", "30"]),
            options={"type": "list"},
        ),
        types="mv new.xlsx prices.xlsx\n",
        files={"prices.xlsx": "old.xlsx", "new.xlsx": "new.xlsx"},
    ),
    Family(
        "slides (pptx)",
        "Replace talk.pptx by tall.pptx.",
        check("check_slide_orientation_Portrait", vm_file("talk.pptx")),
        types="mv tall.pptx talk.pptx\n",
        files={"talk.pptx": "wide.pptx", "tall.pptx": "tall.pptx"},
    ),
    Family(
        "pdf",
        "Replace book.pdf by three.pdf.",
        check("check_pdf_pages", vm_file("book.pdf"), rule({"relation": "eq", "ref_value": 3})),
        types="mv three.pdf book.pdf\n",
        files={"book.pdf": "one.pdf", "three.pdf": "three.pdf"},
    ),
    Family(
        "picture",
        "Replace photo.png by large.png.",
        check("check_image_size", vm_file("photo.png"), rule({"width": 80, "height": 60})),
        types="mv large.png photo.png\n",
        files={"photo.png": "small.png", "large.png": "large.png"},
    ),
    Family(
        "database",
        "Replace data.db by shop.db.",
        check("run_sqlite3", vm_file("data.db"), rule({"sql": "select count(*) = 3 from orders"})),
        types="mv shop.db data.db\n",
        files={"data.db": "empty.db", "shop.db": "shop.db"},
    ),
    Family(
        "web page",
        "Replace index.html by new.html.",
        check("compare_htmls", vm_file("index.html"), cloud_file("new.html")),
        types="mv new.html index.html\n",
        files={"index.html": "=<p>old</p>", "new.html": "=<h1>new</h1><p>page</p>"},
        gold={"new.html": "=<h1>new</h1><p>page</p>"},
    ),
    Family(
        "Python source",
        "Replace main.py by fixed.py.",
        check("compare_python_pure_text", vm_file("main.py"), cloud_file("fixed.py")),
        types="mv fixed.py main.py\n",
        files={"main.py": "=print(1)\n", "fixed.py": "=print(2)\n"},
        gold={"fixed.py": "=print(2)\n"},
    ),
    Family(
        "screen size",
        "Write the screen's width and height into size.txt.",
        {
            "func": ["literal_match", "file_contains"],
            "conj": "and",
            "result": [{"type": "vm_screen_size"}, vm_file("size.txt")],
            "expected": [
                rule({"width": SCREEN[0], "height": SCREEN[1]}),
                rule({"expected": [f"{SCREEN[0]} {SCREEN[1]}"]}),
            ],
        },
        types=f"echo {SCREEN[0]} {SCREEN[1]} > size.txt\n",
    ),
    Family(
        "several checks, either is enough",
        "Make a file named left or right.",
        {
            "func": ["exact_match", "exact_match"],
            "conj": "or",
            "result": [command("ls left"), command("ls right")],
            "expected": [rule({"expected": "left\n"}), rule({"expected": "right\n"})],
        },
        types="touch right\n",
    ),
    Family(
        "infeasible",
        "Make this terminal a kettle.",
        {"func": "infeasible"},
        ending=GIVE_UP,
    ),
)


def task_of(family: Family, documents: dict[str, str]) -> Task:
    """The family's task; `documents` are base64 by name."""
    oracle = [*_oracle(family), family.ending]
    return Task(
        task_id=family.name.translate(str.maketrans(" ,()", "----")),
        instruction=family.instruction,
        screen=SCREEN,
        config=tuple(_setup(family, documents)),
        # What was typed last may still be on its way to the disk.
        evaluator={**family.evaluator, "postconfig": [_step("sleep", seconds=0.5)]},
        oracle={"actions": [action.model_dump(mode="json") for action in oracle]},
    )


def _oracle(family: Family) -> Iterator[Action]:
    if family.types:
        yield Action(kind=ActionKind.TYPE, text=family.types)
    if family.editor:
        yield Action(kind=ActionKind.KEY, keys=("ctrl", "s"))


def _setup(family: Family, documents: dict[str, str]) -> Iterator[dict[str, Any]]:
    if family.files:
        uploads = [
            {"path": f"{HOME}/{name}", **content(text, documents)} for name, text in family.files.items()
        ]
        yield _step("upload_file", files=uploads)
    if family.editor:
        program, title = ["mousepad", f"{HOME}/{family.editor}"], family.editor
    else:
        program, title = ["xterm", "-T", "Terminal", "-e", "sh"], "Terminal"
    yield _step("launch", command=program)
    yield _step("execute", command=["wmctrl", "-l"], until={"stdout": title})
    yield _step("activate_window", window_name=title)
    yield _step("sleep", seconds=0.5)


def _step(verb: str, **parameters: Any) -> dict[str, Any]:
    return {"type": verb, "parameters": parameters}


def content(text: str, documents: dict[str, str]) -> dict[str, str]:
    """What an upload holds."""
    return {"content": text[1:]} if text.startswith("=") else {"content_base64": documents[text]}
