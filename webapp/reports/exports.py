"""Frozen charts and tables as CSV and LaTeX."""

import csv
from io import StringIO
from typing import Any

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "✓": r"\checkmark{}", "✗": r"$\times$",
    "–": "--", "−": "$-$", "·": r"$\cdot$", "±": r"$\pm$",
}  # fmt: skip
"""Character -> how LaTeX (with amssymb) writes it."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
FORMATS = {"csv": "text/csv; charset=utf-8", "tex": "text/x-tex; charset=utf-8"}


def find_block(content: dict[str, Any], key: str) -> dict[str, Any] | None:
    """The chart or table of this key."""
    return next((one for one in (*content["charts"], *content["tables"]) if one["key"] == key), None)


def exported(block: dict[str, Any], kind: str) -> str:
    """The block as `csv` or `tex`."""
    if kind == "csv":
        return as_csv(block)
    return chart_as_latex(block) if "lines" in block else table_as_latex(block)


def as_csv(block: dict[str, Any]) -> str:
    """A table as it stands; a chart as rows of series, step and value."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    if "lines" in block:
        writer.writerow(["series", "step", "value"])
        for line in block["lines"]:
            writer.writerows([_cell(line["name"]), x, y] for x, y in zip(line["x"], line["y"], strict=True))
    else:
        writer.writerows([_cell(value) for value in row] for row in (block["head"], *block["rows"]))
    return out.getvalue()


def _cell(value: str) -> str:
    """A text that a spreadsheet would run as a formula is marked as text."""
    return f"'{value}" if value.startswith(FORMULA_STARTS) and not _is_number(value) else value


def _is_number(value: str) -> bool:
    return value.lstrip("+-").replace(".", "", 1).isalnum() and value.lstrip("+-")[:1] in "0123456789"


def table_as_latex(block: dict[str, Any]) -> str:
    """A `tabular` with a caption; needs booktabs and amssymb."""
    columns = "l" * len(block["head"])
    rows = [" & ".join(latex(value) for value in row) + r" \\" for row in block["rows"]]
    head = " & ".join(latex(value) for value in block["head"]) + r" \\"
    inner = ["\\toprule", head, "\\midrule", *rows, "\\bottomrule"]
    return "\n".join(
        [
            "% needs \\usepackage{booktabs, amssymb}",
            "\\begin{table}",
            f"\\caption{{{latex(block['title'])}}}",
            f"\\begin{{tabular}}{{{columns}}}",
            *inner,
            "\\end{tabular}",
            "\\end{table}",
            "",
        ]
    )


def chart_as_latex(block: dict[str, Any]) -> str:
    """A `tikzpicture` of pgfplots, one plot per line."""
    plots = []
    for line in block["lines"]:
        points = " ".join(f"({x},{y})" for x, y in zip(line["x"], line["y"], strict=True) if y is not None)
        plots += [f"\\addplot coordinates {{{points}}};", f"\\addlegendentry{{{latex(line['name'])}}}"]
    mode = "ymode=log, " if block["kind"] == "log" else ""
    label = f"ylabel={{{latex(block['unit'])}}}, " if block["unit"] else ""
    return "\n".join(
        [
            "% needs \\usepackage{pgfplots}",
            "\\begin{tikzpicture}",
            f"\\begin{{axis}}[title={{{latex(block['title'])}}}, {mode}{label}xlabel={{step}}, no markers]",
            *plots,
            "\\end{axis}",
            "\\end{tikzpicture}",
            "",
        ]
    )


def latex(text: str) -> str:
    """Plain text as LaTeX shows it."""
    return "".join(LATEX.get(char, char) for char in " ".join(text.split()))
