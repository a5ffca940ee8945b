"""What is saved as a folder opens from disk: pictures and links, without a server."""

from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from playwright.sync_api import Browser, Page, expect

from testing.browser.people import People, SignIn
from testing.factories import make_group, make_trajectory


@pytest.fixture
def disk(browser: Browser) -> Iterator[Page]:
    """A browser that has never seen the server; whatever is not a file of the folder fails the test."""
    context = browser.new_context()
    page = context.new_page()
    problems: list[str] = []
    page.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
    page.on("request", lambda request: request.url.startswith("file://") or problems.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()
    assert problems == []


def saved(page: Page, tmp_path: Path) -> Path:
    """The folder behind the page's button, unpacked."""
    with page.expect_download() as download:
        page.locator("a[download][href$='/folder/']").click()
    with ZipFile(download.value.path()) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
        names = archive.namelist()
    [root] = {name.partition("/")[0] for name in names}
    assert root == download.value.suggested_filename.removesuffix(".zip")
    return tmp_path / root


def sees_all_pictures(page: Page) -> int:
    """How many there are; each has been painted."""
    pictures = page.locator("main img")
    for place in range(pictures.count()):
        pictures.nth(place).scroll_into_view_if_needed()
    page.wait_for_function(
        "() => [...document.querySelectorAll('main img')].every((one) => one.naturalWidth)"
    )
    return pictures.count()


def test_a_group_and_its_members_open_from_disk(
    sign_in: SignIn, people: People, disk: Page, tmp_path: Path
) -> None:
    group = make_group(team=people.team, size=2)
    members = [make_trajectory(group=group, turns=3, member=place) for place in (0, 1)]
    page = sign_in(people.viewer)
    page.goto(f"/groups/{group.pk}/")
    folder = saved(page, tmp_path)
    disk.goto(f"file://{folder}/index.html")
    expect(disk.get_by_role("heading", level=1)).to_have_text(group.task.instruction)
    assert sees_all_pictures(disk) == 2
    disk.get_by_role("link", name="Member 2", exact=True).click()
    assert disk.url.endswith(f"/trajectory-{members[1].pk}.html")
    assert sees_all_pictures(disk) >= 3
    expect(disk.get_by_role("heading", name="Turn 3")).to_be_visible()
    disk.get_by_role("button", name="Light or dark").click()
    disk.get_by_role("link", name=f"Group {group.pk}").click()
    assert disk.url.endswith("/index.html")


def test_a_trajectory_opens_from_disk(sign_in: SignIn, people: People, disk: Page, tmp_path: Path) -> None:
    trajectory = make_trajectory(team=people.team, turns=2)
    turn = trajectory.turns.first()
    turn.action = {"kind": "click", "x": turn.width // 2, "y": turn.height // 4}
    turn.save(update_fields=["action"])
    page = sign_in(people.viewer)
    page.goto(f"/trajectories/{trajectory.pk}/")
    folder = saved(page, tmp_path)
    disk.goto(f"file://{folder}/index.html")
    assert sees_all_pictures(disk) >= 2
    mark = disk.locator("#turn-1 .copy-mark")
    assert mark.get_attribute("style") == "left:50.0%;top:25.0%"
    expect(disk.get_by_text("Reward breakdown")).to_be_visible()
