"""A page of an exported folder, opened as a file: its own script and styles, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.template.loader import render_to_string
from playwright.sync_api import Browser

HOSTILE = '<script>document.title="inline"</script><img src=x onerror="document.title=\'handler\'">'


@pytest.mark.parametrize("has_policy", [True, False])
def test_what_a_transcript_smuggles_into_a_page_does_not_run(
    tmp_path: Path, browser: Browser, has_policy: bool
):
    page = render_to_string("static_folder/base.html").replace("</main>", f"{HOSTILE}</main>")
    if not has_policy:
        page = page.replace("Content-Security-Policy", "X-None")
    (tmp_path / "index.html").write_text(page)
    (tmp_path / "style").mkdir()
    (tmp_path / "style" / "theme.js").write_text('addEventListener("DOMContentLoaded", () => window.ran = 1)')
    (tmp_path / "style" / "deskhand.css").write_text("body { color: rgb(1, 2, 3) }")
    opened = browser.new_page()
    opened.goto((tmp_path / "index.html").as_uri())
    opened.wait_for_timeout(300)
    assert opened.evaluate("window.ran") == 1
    assert opened.evaluate("getComputedStyle(document.body).color") == "rgb(1, 2, 3)"
    assert (opened.title() == "handler") is not has_policy
    opened.close()
