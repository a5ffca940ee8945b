"""Screenshots as a vision tower reads them: their grid, their size, and the values of their patches."""

import numpy as np
from PIL import Image
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil, smart_resize

from training.render.rendered_sequence import Grid
from training.untrusted.pictures import open_picture


class Pictures:
    """Cuts pictures by the image settings of a model; one that sees none has no settings."""

    def __init__(self, image_processor: Qwen2VLImageProcessorPil | None) -> None:
        self._image_processor = image_processor
        self.merge: int = image_processor.merge_size if image_processor else 1
        self._level_table: np.ndarray | None = None

    @property
    def sees(self) -> bool:
        """Whether the model has a vision tower."""
        return self._image_processor is not None

    @property
    def image_processor(self) -> Qwen2VLImageProcessorPil:
        """Raises ValueError for a model that sees no pictures."""
        if self._image_processor is None:
            raise ValueError(
                "this model sees no pictures: leave screenshot and marks out of prompt.observation, or set "
                "model.path to a vision-language model"
            )
        return self._image_processor

    def resized_size(self, image_size: tuple[int, int]) -> tuple[int, int]:
        """(width, height) in pixels of a screenshot after the processor's resize; without eyes, as it is."""
        if not self.sees:
            return image_size
        _, h, w = self.image_grid(image_size)
        patch = self.image_processor.patch_size
        return w * patch, h * patch

    def image_grid(self, image_size: tuple[int, int]) -> Grid:
        """Patch grid (time, height, width) of a screenshot of (width, height) pixels."""
        width, height = image_size
        processor = self.image_processor
        resized_height, resized_width = smart_resize(
            height,
            width,
            factor=processor.patch_size * processor.merge_size,
            min_pixels=processor.size["shortest_edge"],
            max_pixels=processor.size["longest_edge"],
        )
        return 1, resized_height // processor.patch_size, resized_width // processor.patch_size

    def pixels(self, png: bytes) -> np.ndarray:
        """Patch values of a PNG. [t * h * w, channels * temporal * patch * patch], float32"""
        return self.patches(self.resized(png))

    def resized(self, png: bytes) -> np.ndarray:
        """The PNG as the vision tower's grid wants it. [height, width, 3], uint8"""
        with open_picture(png) as image:
            size = self.resized_size(image.size)
            return np.asarray(image.convert("RGB").resize(size, self.image_processor.resample))

    def patches(self, image: np.ndarray) -> np.ndarray:
        """Patch values of a resized image, bit for bit those of the image processor, several times faster."""
        processor = self.image_processor
        values = np.stack([levels[image[..., channel]] for channel, levels in enumerate(self.levels())])
        return processor.patchify(
            values, processor.patch_size, processor.merge_size, processor.temporal_patch_size
        )[0]

    def byte_rows(self, image: np.ndarray) -> np.ndarray:
        """`patches` of one frame before levels are looked up. [t * h * w, channels * patch * patch], uint8"""
        patch, merge = self.image_processor.patch_size, self.image_processor.merge_size
        height, width, channels = image.shape
        down, across = height // (patch * merge), width // (patch * merge)
        blocks = image.reshape(down, merge, patch, across, merge, patch, channels)
        return blocks.transpose(0, 3, 1, 4, 6, 2, 5).reshape(-1, channels * patch * patch)

    @property
    def frames_per_row(self) -> int:
        """Frames that one row of patch values spans; a screenshot shows the same in all of them."""
        return self.image_processor.temporal_patch_size

    def levels(self) -> np.ndarray:
        """What the processor makes of each of the 256 levels of each channel. [3, 256], float32"""
        if self._level_table is None:
            processor = self.image_processor
            side = processor.patch_size * processor.merge_size
            ramp = (np.arange(side * side) % 256).astype(np.uint8).reshape(side, side)
            image = np.repeat(ramp[..., None], 3, axis=-1)
            made = processor(images=[Image.fromarray(image)], do_resize=False, return_tensors="np")
            bytes_of = self.byte_rows(image).reshape(side * side // processor.patch_size**2, 3, -1)
            values = made["pixel_values"].reshape(len(bytes_of), 3, processor.temporal_patch_size, -1)[
                :, :, 0
            ]
            self._level_table = np.empty((3, 256), dtype=np.float32)
            for channel, table in enumerate(self._level_table):
                table[bytes_of[:, channel]] = values[:, channel]
        return self._level_table
