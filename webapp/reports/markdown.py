"""A report's text as HTML: no raw HTML, no pictures from elsewhere, links that run nothing."""

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

# html off: tags are shown as text. markdown-it refuses javascript:, vbscript:, file: and data: in links.
RENDERER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


def as_html(text: str) -> SafeString:
    """Markdown (CommonMark and tables) as HTML that is safe to show."""
    tokens = RENDERER.parse(text)
    for token in tokens:
        for part in token.children or ():
            if part.type == "link_open":
                part.attrSet("rel", "noopener noreferrer nofollow")
    return mark_safe(RENDERER.renderer.render(tokens, RENDERER.options, {}))
