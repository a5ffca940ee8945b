"""Requests that name their screenshots in the spool: runs inside SGLang's process.

SGLang's own processor decodes, resizes and normalises every image of every request, and would go through
text. This one takes the token ids as they are (image pads expanded by `training.render.renderer`) and
leaves the pixels where they lie; `training.sampler.sglang.served_model` reads them when the tower must run.

    image_data: [{"file": NAME in the spool, "sha256": of the PNG, "grid": [time, height, width]}, ...]

Requests in SGLang's own forms (paths, base64, its processor's output) go SGLang's own way.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sglang.srt.managers.schedule_batch import Modality, MultimodalDataItem, MultimodalProcessorOutput
from sglang.srt.models.qwen2_5_vl import Qwen2_5_VLForConditionalGeneration
from sglang.srt.models.qwen3_5 import (
    Qwen3_5ForConditionalGeneration,
    Qwen3_5MoeForConditionalGeneration,
)
from sglang.srt.models.qwen3_vl import Qwen3VLForConditionalGeneration
from sglang.srt.models.qwen3_vl_moe import Qwen3VLMoeForConditionalGeneration
from sglang.srt.multimodal.processors.qwen_vl import QwenVLImageProcessor

NOWHERE = np.zeros(1, dtype=np.uint8)
"""Stands for the pixels; an array, not a tensor, so that SGLang does not move it through shared memory."""


def is_spooled(image: Any) -> bool:
    """Whether a request names a screenshot of ours."""
    return isinstance(image, dict) and "file" in image


class SpooledImages(QwenVLImageProcessor):
    """See the module's docstring. ValueErrors become answers with status 400."""

    models = [
        Qwen2_5_VLForConditionalGeneration,
        Qwen3VLForConditionalGeneration,
        Qwen3VLMoeForConditionalGeneration,
        Qwen3_5ForConditionalGeneration,
        Qwen3_5MoeForConditionalGeneration,
    ]

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.folder = Path(os.environ["DESKHAND_IMAGE_FOLDER"])

    async def process_mm_data_async(
        self, image_data: list, input_text: list[int], request_obj: Any, *arguments: Any, **keywords: Any
    ) -> MultimodalProcessorOutput:
        """Items of one image each, with the places of their pads and the three rope positions."""
        if not all(is_spooled(image) for image in image_data):
            return await super().process_mm_data_async(
                image_data, input_text, request_obj, *arguments, **keywords
            )
        if not isinstance(input_text, list):
            raise ValueError("input_ids: the prompt must come as token ids")
        items = self._items(input_text, image_data)
        positions, delta = self._positions(input_text, items)
        return MultimodalProcessorOutput(
            input_ids=input_text,
            padded_input_ids=MultimodalProcessorOutput.build_padded_input_ids(input_text, items),
            mm_items=items,
            im_start_id=self.vision_start_token_id,
            im_end_id=self.vision_end_token_id,
            im_token_id=self.mm_tokens.image_token_id,
            video_token_id=self.mm_tokens.video_token_id,
            mrope_positions=positions,
            mrope_position_delta=delta,
        )

    def _positions(
        self, token_ids: list[int], items: list[MultimodalDataItem]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Time, height and width of every token [3, tokens], and how far the next one lies off its index."""
        # SGLang's quick way knows Qwen3's families alone.
        quick = self._compute_image_only_mrope_positions_from_offsets(
            input_len=len(token_ids), mm_items=items, dtype=torch.long, device=torch.device("cpu")
        )
        if quick is None:
            return self.compute_mrope_positions(token_ids, items)
        return quick[0].squeeze(1), quick[1]

    def _items(self, token_ids: list[int], images: list[dict[str, Any]]) -> list[MultimodalDataItem]:
        pads = np.flatnonzero(np.asarray(token_ids) == self.IM_TOKEN_ID)
        items, seen = [], 0
        for number, image in enumerate(images):
            t, h, w = image["grid"]
            count = t * h * w // self.spatial_merge_size**2
            place = pads[seen : seen + count]
            if len(place) < count or place[-1] - place[0] != count - 1:
                raise ValueError(f"image_data: image {number} needs {count} image pads in a row")
            if not (self.folder / image["file"]).is_file():
                raise ValueError(f"image_data: no image {image['file']} in {self.folder}")
            item = MultimodalDataItem(
                modality=Modality.IMAGE,
                hash=int(image["sha256"][:16], 16),
                offsets=[(int(place[0]), int(place[-1]))],
                feature=NOWHERE,
                model_specific_data={
                    "image_grid_thw": torch.tensor([[t, h, w]]),
                    "image_file": image["file"],
                },
            )
            item.set_pad_value()
            items.append(item)
            seen += count
        if seen != len(pads):
            raise ValueError(f"image_data: {len(pads)} image pads, but the images need {seen}")
        return items
