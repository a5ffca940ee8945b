"""Roles of widgets that OSWorld's agents show their models."""

USABLE_START = "document"
USABLE_ENDINGS = (
    *("item", "button", "heading", "label", "scrollbar", "searchbox", "textbox", "link", "tabelement"),
    *("textfield", "textarea", "menu"),
)
USABLE = frozenset(
    {
        *("alert", "canvas", "check-box", "combo-box", "entry", "icon", "image", "paragraph", "scroll-bar"),
        *("section", "slider", "static", "table-cell", "terminal", "text"),
        # Windows
        *("netuiribbontab", "start", "trayclockwclass", "traydummysearchcontrol", "uiimage", "uiproperty"),
        "uiribboncommandbar",
    }
)
