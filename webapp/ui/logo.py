"""The drawing of static/img/favicon.svg, for pages that hold it themselves."""

from functools import cache

from django.conf import settings
from django.utils.safestring import SafeString


@cache
def logo_drawing() -> SafeString:
    """What stands behind its "<svg". Read when a page shows it: workers have no files of pages."""
    file = settings.BASE_DIR / "static" / "img" / "favicon.svg"
    return SafeString(file.read_text().removeprefix("<svg "))
