"""The data of SFT: what its batches hold."""

from __future__ import annotations

import random

import numpy as np
import pytest

from testing.training.demonstrations import DOWN, choosing, clicking, typing
from testing.training.tiny_model import SIZE, Frames, demonstration, renderer, screenshot
from training.batch.demonstrations_and_questions import SftDataset
from training.batch.screenshot_cache import ScreenshotCache
from training.batch.screenshot_questions import instruction_questions, locator_questions
from training.render.shift_augmentation import (
    Shift,
    is_shiftable,
    random_shift,
    shift_image,
    shifted,
    split_name,
)


@pytest.fixture(scope="module")
def reader():
    return renderer()


def test_a_locator_question_asks_a_name_and_wants_its_coordinate(reader):
    asked = locator_questions(clicking(Frames()), reader.prompt.permille_grid)
    questions = {question.text: question.answer for question in asked}
    assert questions == {"red button": "200,520", "blue button": "780,250", "green button": "500,780"}


def test_an_instruction_is_carried_over_to_every_other_widget(reader):
    asked = instruction_questions(clicking(Frames()), reader.action_text)
    answers = {question.text: question.answer for question in asked}
    assert set(answers) == {f"Click the {colour} button." for colour in ("red", "blue", "green")}
    assert answers["Click the blue button."] == '{"action":"left_click","coordinate":[780,250]}'


def test_a_typed_text_is_swapped_for_the_texts_of_other_demonstrations(reader):
    asked = instruction_questions(typing(Frames(), "red fox", 1), reader.action_text, ["blue hen"])
    answers = {question.text: question.answer for question in asked}
    assert answers['Type "blue hen" and save.'] == '{"action":"type","text":"blue hen"}'


def test_a_family_may_name_other_instructions_itself(reader):
    oracle = {"alternatives": [{"instruction": "Choose row 9.", "action": {"kind": "key", "keys": ["Up"]}}]}
    one = demonstration(Frames(), [DOWN], instruction="Choose row 2.", oracle=oracle)
    asked = instruction_questions(one, reader.action_text)
    assert [question.text for question in asked] == ["Choose row 2.", "Choose row 9."]


def test_a_batch_holds_whole_demonstrations_and_packed_questions(reader):
    frames = Frames()
    data = [clicking(frames), choosing(frames), typing(frames, "red fox", 20), typing(frames, "blue hen", 30)]
    whole, packed = SftDataset.from_trajectories(data, reader).batch(10, random.Random(1))
    assert (len(whole), len(packed)) == (4, 6)
    assert {len(sample.images) for sample in whole} == {2}
    assert {len(sample.images) for sample in packed} == {1}
    for sample in [*whole, *packed]:
        pads = sum(token == reader.image_pad_id for token in sample.token_ids)
        assert pads == 48 * len(sample.images)


def test_questions_that_do_not_fit_the_context_are_left_out(reader):
    data, longest = [clicking(Frames())], 0
    for limit in (150, 180, 10_000):
        dataset = SftDataset.from_trajectories(data, reader, max_tokens=limit)
        _, packed = dataset.batch(10, random.Random(1))
        lengths = [len(sample.token_ids) for sample in packed]
        assert longest < max(lengths) <= limit
        longest = max(lengths)
    nothing_fits = SftDataset.from_trajectories(data, reader, max_tokens=8)
    assert len(nothing_fits.batch(10, random.Random(1))) == 1


def test_the_same_seed_makes_the_same_batch(reader):
    frames = Frames()
    dataset = SftDataset.from_trajectories([clicking(frames), choosing(frames)], reader)
    first, again, other = (dataset.batch(6, random.Random(seed)) for seed in (3, 3, 4))
    assert [s.token_ids for part in first for s in part] == [s.token_ids for part in again for s in part]
    assert [s.token_ids for part in first for s in part] != [s.token_ids for part in other for s in part]


def test_without_questions_a_batch_is_demonstrations_only(reader):
    dataset = SftDataset.from_trajectories([clicking(Frames())], reader, locator_questions=0)
    assert [len(part) for part in dataset.batch(5, random.Random(0))] == [5]


def test_no_demonstrations_are_an_error_that_says_what_to_do(reader):
    with pytest.raises(ValueError, match="record oracle trajectories"):
        SftDataset.from_trajectories([], reader)


def test_only_keyboard_demonstrations_are_shifted():
    assert is_shiftable(choosing(Frames()))
    assert not is_shiftable(clicking(Frames()))


def test_a_shift_keeps_all_widgets_on_the_screen_and_moves_them_with_the_pixels():
    rng = random.Random(0)
    for _ in range(50):
        moved = shifted(choosing(Frames()), random_shift(choosing(Frames()), (256, 192), rng), (256, 192))
        assert all(0 < w["x"] < SIZE[0] and 0 < w["y"] < SIZE[1] for w in moved.task.oracle["widgets"])
    moved = shifted(choosing(Frames()), Shift(10, -5), (256, 192))
    assert moved.task.oracle["widgets"][0] == {"name": "row 1", "x": 220, "y": 98}


def test_a_shifted_frame_is_the_screenshot_moved(reader):
    frames = Frames()
    digest = frames.store(screenshot(1))
    pixels = ScreenshotCache(reader, fetch=frames.pngs.__getitem__)
    image = reader.resized(screenshot(1))
    moved = shift_image(image, Shift(7, 3))
    assert np.array_equal(moved[3:, 7:], image[:-3, :-7])
    assert np.array_equal(pixels(f"{digest}@7,3"), reader.patches(moved))
    assert np.array_equal(pixels(digest), reader.pixels(screenshot(1)))
    assert split_name(f"{digest}@-7,3") == (digest, Shift(-7, 3))


def test_patches_are_bit_for_bit_those_of_the_image_processor(reader):
    from PIL import Image

    image = reader.resized(screenshot(2))
    expected = reader.image_processor(images=[Image.fromarray(image)], do_resize=False, return_tensors="np")[
        "pixel_values"
    ]
    assert np.array_equal(reader.patches(image), expected)
