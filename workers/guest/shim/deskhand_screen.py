"""Pictures and pixels of the screen under pyautogui's names; looking for pictures is not offered."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deskhand_input import shared_input

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "locateAllOnScreen",
    "locateCenterOnScreen",
    "locateOnScreen",
    "pixel",
    "pixelMatchesColor",
    "screenshot",
]


def screenshot(imageFilename: "str | None" = None, region: "Sequence[float] | None" = None) -> "Image.Image":
    """The screen as a PIL image, pointer left out."""
    from PIL import Image

    x = shared_input()
    width, height = x.size()
    data = x.screen.root.get_image(0, 0, width, height, 2, 0xFFFFFFFF).data
    image = Image.frombuffer("RGB", (width, height), data, "raw", "BGRX", 0, 1)
    if region is not None:
        left, top, wide, high = (int(value) for value in region)
        image = image.crop((left, top, left + wide, top + high))
    if imageFilename is not None:
        image.save(imageFilename)
    return image


def pixel(x: int, y: int) -> tuple[int, int, int]:
    color = screenshot(region=(x, y, 1, 1)).getpixel((0, 0))
    assert isinstance(color, tuple)  # the picture is RGB
    return color[0], color[1], color[2]


def pixelMatchesColor(x: int, y: int, expectedRGBColor: Sequence[int], tolerance: int = 0) -> bool:
    return all(abs(a - b) <= tolerance for a, b in zip(pixel(x, y), expectedRGBColor, strict=False))


def locateOnScreen(*_args: object, **_kwargs: object) -> None:
    raise NotImplementedError("looking for pictures on the screen is not offered here")


locateCenterOnScreen = locateAllOnScreen = locateOnScreen
