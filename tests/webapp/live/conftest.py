"""What the live tests share."""

from collections.abc import AsyncIterator

import pytest
from asgiref.sync import sync_to_async
from django.db import connections


@pytest.fixture(autouse=True)
async def closed_connections(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Async tests query from asgiref's thread; its connection would keep PostgreSQL's test database busy."""
    yield
    if request.node.get_closest_marker("asyncio"):
        await sync_to_async(connections.close_all)()
