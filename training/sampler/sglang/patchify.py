"""From a screenshot's pixels to the rows that the vision tower takes; on any device. Pure.

The same numbers as `training.render.renderer.Renderer.patchify`, which is the trainer's side.
"""

import torch


def patchify(
    image: torch.Tensor, levels: torch.Tensor, *, patch: int, merge: int, temporal: int
) -> torch.Tensor:
    """Patch values of one image. [height / patch * width / patch, 3 * temporal * patch * patch], float32

    image: [height, width, 3], uint8, sides divisible by patch * merge. levels: [3, 256], float32.
    Rows go by merged blocks, as the tower's merger wants them; a still image fills all time slots.
    """
    height, width, channels = image.shape
    values = torch.gather(levels, 1, image.reshape(-1, channels).T.long())
    rows, columns = height // (patch * merge), width // (patch * merge)
    blocks = values.view(channels, rows, merge, patch, columns, merge, patch)
    ordered = blocks.permute(1, 4, 2, 5, 0, 3, 6).unsqueeze(5)
    repeated = ordered.expand(*ordered.shape[:5], temporal, patch, patch)
    return repeated.reshape(rows * columns * merge**2, channels * temporal * patch * patch)
