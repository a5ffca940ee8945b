"""docs/settings.md is what its script writes of the config's schema."""

from scripts.write_settings_page import PAGE, page


def test_the_page_of_settings_is_written_anew():
    assert PAGE.read_text() == page(), "run python -m scripts.write_settings_page"
