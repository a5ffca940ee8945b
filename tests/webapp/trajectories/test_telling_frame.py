"""What lists show of a trajectory."""

from io import BytesIO

import pytest
from PIL import Image, ImageDraw

from testing.factories import make_team
from webapp.trajectories.pictures.telling_frame import most_telling
from webapp.trajectories.services.frames import store_frame

pytestmark = pytest.mark.django_db

SIZE = (1280, 800)


def wallpaper(photo: bool = False) -> Image.Image:
    """A plain desktop, or one with soft slopes that compress worse than a window does."""
    if not photo:
        return Image.new("RGB", SIZE, (48, 84, 120))
    noise = Image.effect_noise((16, 10), 90).resize(SIZE, Image.Resampling.BICUBIC)
    return Image.merge("RGB", (noise, noise.rotate(180), noise))


def with_window(screen: Image.Image, lines: int) -> Image.Image:
    pen = ImageDraw.Draw(screen)
    pen.rectangle((240, 120, 1000, 660), fill="white", outline="black", width=2)
    for line in range(lines):
        pen.text((260, 140 + 24 * line), "What the agent typed into the editor " * 3, fill="black")
    return screen


def png(screen: Image.Image) -> bytes:
    out = BytesIO()
    screen.save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("photo", [False, True])
def test_an_emptied_desktop_is_not_shown_when_a_window_was_open_before(photo: bool):
    team = make_team()
    empty, begun, full = (
        store_frame(team, png(screen))
        for screen in (wallpaper(photo), with_window(wallpaper(photo), 4), with_window(wallpaper(photo), 20))
    )
    assert most_telling([empty, begun, full, empty]) == full


def test_of_screens_that_show_as_much_the_newest_is_shown():
    team = make_team()
    one, two = (store_frame(team, png(with_window(wallpaper(), lines))) for lines in (19, 20))
    assert most_telling([two, one]) == one
    assert most_telling(["", two]) == two
    assert most_telling([]) == ""
