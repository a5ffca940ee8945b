"""Definitions that are of no kind."""

import pytest

from webapp.lib.request_values import BadValue
from webapp.scanners.definition_schemas import read_definition


@pytest.mark.parametrize(("values", "message"), [({"kind": "dance"}, "dance"), ([], "kind")])
def test_what_is_of_no_kind_is_refused(values, message):
    with pytest.raises(BadValue, match=message):
        read_definition(values)
