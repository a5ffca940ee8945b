"""Notes each call of the database on an event loop: it would hold up all others, and Django refuses it.

The refusal may end a thread or a socket that no test looks at, so `testing.session` fails the test for it.
One loop is no loop of the product: Playwright's, which runs in the main thread once a browser has started.
"""

import asyncio
import threading
import traceback

import django.utils.asyncio

FRAMES = 14

calls: list[str] = []
"""Where from, newest last."""
_is_main_thread_exempt = False


def _running_loop() -> asyncio.AbstractEventLoop:
    """For Django, in place of asyncio's; raises RuntimeError when this thread may call the database."""
    loop = asyncio.get_running_loop()
    if _is_main_thread_exempt and threading.current_thread() is threading.main_thread():
        raise RuntimeError("the loop is Playwright's")
    calls.append("".join(traceback.format_stack(limit=FRAMES)))
    return loop


def install() -> None:
    """From here on calls on loops are noted. Idempotent."""
    django.utils.asyncio.get_running_loop = _running_loop  # type: ignore[attr-defined]


def exempt_main_thread() -> None:
    """Playwright's loop runs in it from here on; Django would take every query for a blocking one."""
    global _is_main_thread_exempt
    install()
    _is_main_thread_exempt = True
