"""The tree as OSWorld's agents write it for their models: a table with tabs between its columns."""

from training.observations.widget_tree import BASE, Widget, widgets_of

HEADER = "tag\tname\ttext\tclass\tdescription\tposition (top-left x&y)\tsize (w&h)"
_ATTRIBUTES = f"{{{BASE.format(system='windows')}attributes}}"
"""OSWorld looks for them under the name of Windows on Ubuntu, too, where they are not: kept, as its models
were trained on it."""


def osworld_table(xml: str) -> str:
    """The table of a tree's usable widgets. Raises BadTree."""
    return "\n".join([HEADER, *(_row(widget) for widget in widgets_of(xml) if widget.is_usable)])


def _row(widget: Widget) -> str:
    is_windows = widget.system == "windows"
    cells = (
        widget.role,
        widget.name,
        quoted_text(widget),
        widget.windows_class if is_windows else widget.element.get(f"{_ATTRIBUTES}class", ""),
        widget.element.get(f"{_ATTRIBUTES}description", ""),
        widget.attribute("component", "screencoord"),
        widget.attribute("component", "size"),
    )
    return "\t".join(cells)


def quoted_text(widget: Widget) -> str:
    """What stands in a widget, as a cell of a table."""
    text = widget.text or '""'
    return '"' + text.replace('"', '""') + '"' if '"' in widget.text else text
