"""Metrics compare a desktop with a task: a wrong answer is 0, a broken task is an error."""

import pytest

from training.contracts.types import Action
from workers.tasks.evaluators.metrics import METRICS
from workers.tasks.prepare_and_score import judge_by


def score(metric: str, result, expected, **options) -> float:
    return METRICS[metric](result, expected, options)


@pytest.mark.parametrize(
    ("metric", "result", "expected", "options", "value"),
    [
        ("exact_match", "a\n", {"expected": "a\n"}, {}, 1.0),
        ("exact_match", b"a", {"expected": "a"}, {}, 1.0),
        ("exact_match", "a", {"expected": "b"}, {}, 0.0),
        ("exact_match", None, {"expected": "a"}, {}, 0.0),
        ("check_include_exclude", "red fox", {"include": ["red", "fox"], "exclude": ["owl"]}, {}, 1.0),
        ("check_include_exclude", "red fox owl", {"include": ["red"], "exclude": ["owl"]}, {}, 0.0),
        ("check_include_exclude", "fox", {"include": ["red"]}, {}, 0.0),
        ("check_include_exclude", None, {"include": []}, {}, 0.0),
        ("check_include_exclude", b"\xff\xfe", {"include": []}, {}, 0.0),
        ("compare_text_file", b"red fox", b"red fox", {}, 1.0),
        ("compare_text_file", b"red fox", b"red fox\n", {}, 0.0),
        ("compare_text_file", b"red fox", b"red fox\n", {"ignore_trailing_newlines": True}, 1.0),
        ("compare_text_file", b"red fox\n\n", b"red fox", {"ignore_trailing_newlines": True}, 1.0),
        ("compare_text_file", b" red fox", b"red fox", {"ignore_trailing_newlines": True}, 0.0),
        ("compare_text_file", b"red \t\n fox ", b"red fox", {"ignore_blanks": True}, 1.0),
        ("compare_text_file", b"Red Fox", b"red fox", {"ignore_case": True}, 1.0),
        ("compare_text_file", None, b"red fox", {}, 0.0),
        ("compare_text_file", b"\xff", b"red fox", {}, 0.0),
        (
            "check_json",
            b'{"a":{"b":[1,2]}}',
            {"expect": [{"key": ["a", "b"], "method": "eq", "ref": [1, 2]}]},
            {},
            1,
        ),
        ("check_json", b'{"a":[5]}', {"expect": [{"key": ["a", 0], "method": "gt", "ref": 4}]}, {}, 1.0),
        ("check_json", b'{"a":"5"}', {"expect": [{"key": ["a"], "method": "gt", "ref": 4}]}, {}, 0.0),
        ("check_json", b'{"a":"5"}', {"expect": [{"key": ["b"], "method": "eq", "ref": 4}]}, {}, 0.0),
        ("check_json", b'{"a":1}', {"unexpect": [{"key": ["a"], "method": "eq", "ref": 1}]}, {}, 0.0),
        ("check_json", b"not json", {"expect": []}, {}, 0.0),
        ("check_json", b"[" * 50_000, {"expect": []}, {}, 0.0),
        ("check_json", None, {"expect": []}, {}, 0.0),
        ("check_json", b"\xff", {"expect": []}, {}, 0.0),
    ],
)
def test_a_metric_scores_what_the_agent_left(metric, result, expected, options, value):
    assert score(metric, result, expected, **options) == value


@pytest.mark.parametrize(
    ("metric", "expected", "part"),
    [
        ("exact_match", {}, "a rule with expected"),
        ("exact_match", None, "must be a rule"),
        ("check_include_exclude", ["a"], "must be a rule"),
        ("compare_text_file", {"a": 1}, "expects a file or inline content"),
        ("compare_text_file", b"\xff", "expects a file or inline content"),
        ("check_json", {"expect": [{"key": [], "method": "like", "ref": 1}]}, "no method 'like'"),
        ("check_json", {"expect": [{"key": ["a"], "method": "in", "ref": [1]}]}, "no method 'in'"),
        (
            "check_json",
            {"unexpect": [{"key": ["a"], "method": "re", "ref": "("}]},
            "no pattern for method 're'",
        ),
    ],
)
def test_a_broken_expectation_is_an_error_and_not_a_zero(metric, expected, part):
    with pytest.raises(ValueError, match=part):
        score(metric, b"{}", expected)


LINE_ENDS = [
    (b"hello\r\n", b"hello\n", {}, 1.0),
    (b"hello\r", b"hello\n", {}, 1.0),
    (b"hello\n", b"hello\r\n", {}, 1.0),
    (b"a\r\n\r\nb", b"a\n\nb", {}, 1.0),
    (b"a\rb\r", b"a\r\nb\n", {}, 1.0),
    (b"a\n\rb", b"a\nb", {}, 0.0),
    (b"a\r\r\nb", b"a\n\nb", {}, 1.0),
    (b"hello\r\n", b"hello", {}, 0.0),
    (b"hello\r\n\r\n", b"hello", {"ignore_trailing_newlines": True}, 1.0),
    (b"Red\r\nFox\r\n", b"red fox", {"ignore_blanks": True, "ignore_case": True}, 1.0),
    ("a\N{LINE SEPARATOR}b".encode(), b"a\nb", {}, 0.0),
    (b"a\x0bb", b"a\nb", {}, 0.0),
    (b"\xef\xbb\xbfhello", b"hello", {}, 0.0),
]
"""As the function of desktop-env 1.0.2 has them, which reads files in text mode."""


@pytest.mark.parametrize(("result", "expected", "options", "value"), LINE_ENDS)
def test_cr_lf_and_cr_are_line_ends(result, expected, options, value):
    assert score("compare_text_file", result, expected, **options) == value


DOCUMENT = b'{"a":"Hello","n":5,"f":5.4,"t":"5.4","s":"x,y","q":"\'y,x\'","l":[1],"z":null,"m":"x\\ny"}'
RULES = [
    ("expect", ["a"], "re", "^H", 1.0),
    ("expect", ["a"], "re", "^h", 0.0),
    ("expect", ["a"], "re.I", "^h", 1.0),
    ("expect", ["m"], "re.I.M", "^Y$", 1.0),
    ("expect", ["n"], "re", "5", 0.0),
    ("expect", ["n"], "approx:0.5", 5.4, 1.0),
    ("expect", ["t"], "approx:0.1", 5.4, 1.0),
    ("expect", ["a"], "approx:9", 5, 0.0),
    ("expect", ["n"], "range.te", [0, 5], 1.0),
    ("expect", ["n"], "range.et", [0, 5], 0.0),
    ("expect", ["n"], "range.tt", [5, 9], 0.0),
    ("expect", ["s"], "str_list_eq", ["x", "y"], 1.0),
    ("expect", ["q"], "str_list_eq", ["x", "y"], 0.0),
    ("expect", ["q"], "str_set_eq", ["x", "y"], 1.0),
    ("expect", ["n"], "str_set_eq", ["5"], 0.0),
    ("expect", ["l", 3], "eq", 1, 0.0),
    ("expect", ["z", "deep"], "eq", None, 0.0),
    ("unexpect", ["gone"], "ne", 1, 0.0),
    ("unexpect", ["gone"], "eq", 1, 1.0),
    ("unexpect", ["gone"], "lt", 1, 0.0),
    ("unexpect", ["gone"], "re", "x", 0.0),
    ("unexpect", ["gone"], "approx:1", 1, 1.0),
    ("unexpect", ["l", 3], "eq", 1, 0.0),
    ("unexpect", ["a"], "re", "^h", 1.0),
]
"""Numbers of desktop-env 1.0.2's function."""


@pytest.mark.parametrize(("part", "key", "method", "ref", "value"), RULES)
def test_check_json_has_the_methods_that_were_published(part, key, method, ref, value):
    assert score("check_json", DOCUMENT, {part: [{"key": key, "method": method, "ref": ref}]}) == value


class Flickering:
    """A desktop whose program shows another content at every look."""

    platform = "linux"

    def __init__(self, *contents: bytes) -> None:
        self.agent, self.contents = self, list(contents)

    def get(self, path: str) -> bytes:
        return self.contents.pop(0)


@pytest.mark.parametrize("conj", ["and", "avg"])
def test_parts_that_ask_for_one_file_see_one_content(conj):
    result = {"type": "vm_file", "path": "~/a.txt"}
    evaluator = {
        "func": ["compare_text_file", "compare_text_file"],
        "result": [result, dict(result)],
        "expected": [{"type": "inline", "content": content} for content in ("red", "blue")],
        "conj": conj,
    }
    desktop = Flickering(b"red", b"blue")
    assert judge_by(evaluator, desktop).score == {"and": 0.0, "avg": 0.5}[conj]
    assert judge_by(evaluator, desktop).score == {"and": 0.0, "avg": 0.5}[conj], "looked at anew"
    assert desktop.contents == []


def test_capital_letters_count_unless_the_task_says_otherwise():
    compare = METRICS["compare_text_file"]
    assert [compare(b"Red", "red", options) for options in ({}, {"ignore_case": True})] == [0.0, 1.0]


def test_an_infeasible_task_is_solved_only_by_giving_up():
    claims = [Action(kind="terminate", status=status) for status in ("success", "failure")]
    assert [judge_by({"func": "infeasible"}, None, claim).score for claim in claims] == [0.0, 1.0]


def test_under_or_the_best_part_counts():
    result = {"type": "vm_file", "path": "~/a.txt"}
    evaluator = {
        "func": ["compare_text_file", "compare_text_file"],
        "result": [result, dict(result)],
        "expected": [{"type": "inline", "content": content} for content in ("red", "blue")],
        "conj": "or",
    }
    assert judge_by(evaluator, Flickering(b"blue")).score == 1.0
    assert judge_by(evaluator, Flickering(b"green")).score == 0.0
