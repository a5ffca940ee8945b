"""The table of OSWorld's functions is that of the installed package."""

import pytest

from benchmarks.osworld.compat import catalogue
from training.tasks.supported_by.osworld import functions
from workers.environments.osworld.find_python import FOLDER


@pytest.mark.skipif(not FOLDER.is_dir(), reason="install it by `make osworld-env`")
def test_our_list_of_functions_is_that_of_the_installed_package():
    found = catalogue()
    for kind, listed in functions().items():
        assert {entry.name: entry.module for entry in getattr(found, kind)} == listed
    metrics = {entry.name: entry for entry in found.metrics}
    assert metrics["exact_match"].needs == []
    assert "python-docx" in metrics["compare_docx_files"].needs
