"""Qwen3-VL's rotary positions of a token sequence with images."""

import numpy as np

from training.render.rendered_sequence import Grid


def rope_positions(token_ids: list[int], grids: list[Grid], image_pad_id: int, merge: int) -> np.ndarray:
    """Qwen3-VL's three position rows (time, height, width) of one sequence. [3, T], int64

    Text advances all rows by one; an image starts at one position, spreads its rows and columns,
    and the text after it starts behind the longer side. Raises ValueError when pads and grids differ.
    """
    ids = np.asarray(token_ids)
    positions = np.zeros((3, len(ids)), dtype=np.int64)
    index = position = image = 0
    while index < len(ids):
        if ids[index] != image_pad_id:
            pads = np.flatnonzero(ids[index:] == image_pad_id)
            end = index + (int(pads[0]) if len(pads) else len(ids) - index)
            positions[:, index:end] = np.arange(position, position + end - index)
            position += end - index
            index = end
            continue
        if image >= len(grids):
            raise ValueError(f"{len(grids)} images but more image pads at token {index}")
        t, h, w = grids[image][0], grids[image][1] // merge, grids[image][2] // merge
        cells = np.indices((t, h, w)).reshape(3, -1) + position
        if not (ids[index : index + t * h * w] == image_pad_id).all() or index + t * h * w > len(ids):
            raise ValueError(f"image {image} needs {t * h * w} image pads at token {index}")
        positions[:, index : index + t * h * w] = cells
        position += max(h, w)
        index += t * h * w
        image += 1
    if image != len(grids):
        raise ValueError(f"{len(grids)} images but pads for {image}")
    return positions
