"""A frame keeps its picture, and does not write the same PNG twice."""

import pytest
from PIL import Image

from workers.desktops import frame_images
from workers.desktops.frame import Frame

SCREEN = Image.new("RGB", (32, 24), (10, 90, 200))


def test_an_unchanged_screen_takes_the_png_of_the_frame_before():
    before = Frame.of(SCREEN)
    again = Frame.of(SCREEN.copy(), before=before)
    assert again.png is before.png
    assert again.sha256 == before.sha256 == frame_images.sha256(before.png)
    changed = SCREEN.copy()
    changed.putpixel((3, 3), (0, 0, 0))
    assert Frame.of(changed, before=again).sha256 != before.sha256


def test_equal_pixels_in_another_shape_are_another_frame():
    before = Frame.of(SCREEN)
    assert Frame.of(Image.new("RGB", (24, 32), (10, 90, 200)), before=before).png != before.png


def test_the_picture_is_at_hand_without_decoding():
    frame = Frame.of(SCREEN)
    assert frame.image() is SCREEN
    assert frame_images.digest(frame_images.open_png(frame.png)) == frame.raw_digest


@pytest.mark.parametrize("size", [(1, 1), (1, 77), (333, 1), (64, 48)])
def test_a_png_holds_every_pixel(size: tuple[int, int]):
    parts = [Image.effect_noise(size, deviation) for deviation in (30, 60, 90)]
    picture = Image.merge("RGB", parts)
    assert frame_images.open_png(frame_images.png_of(picture)).tobytes() == picture.tobytes()
