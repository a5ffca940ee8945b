"""The canary: one fixed sequence with an image, scored by engine and trainer after every weight sync.

When both score the same tokens differently, the engine does not run the weights (or does not see the
image) that the trainer thinks it does.
"""

import base64
import io

from PIL import Image, ImageDraw

from training.contracts.weight_requests import Canary
from training.render.rendered_sequence import RenderedSequence
from training.render.renderer import Renderer
from training.sampler.engine import Engine, EngineSequence

SIZE = (512, 384)
INSTRUCTION = "Click the red button."
ANSWER = '{"action":"left_click","coordinate":[320,470]}'


def blank_png() -> bytes:
    """A screenshot of one colour: an engine that scores the canary alike on it sees no image."""
    return _png(Image.new("RGB", SIZE, (58, 80, 107)))


def canary_png() -> bytes:
    """A screenshot with three coloured rectangles; the same bytes everywhere."""
    image = Image.new("RGB", SIZE, (58, 80, 107))
    draw = ImageDraw.Draw(image)
    draw.rectangle((110, 140, 220, 220), fill=(217, 43, 43))
    draw.rectangle((300, 60, 420, 150), fill=(36, 88, 214))
    draw.rectangle((330, 260, 440, 340), fill=(47, 168, 79))
    return _png(image)


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def canary_sequence(renderer: Renderer) -> RenderedSequence:
    """The canary as a rendered trajectory of one turn; its image is named "canary"."""
    size = SIZE if renderer.sees and renderer.prompt.shows_screen else None
    rendered = RenderedSequence()
    if size:
        rendered.images.append("canary")
        rendered.grids.append(renderer.image_grid(size))
    rendered.append_prompt(renderer.render_turn(0, INSTRUCTION, size, instruction=INSTRUCTION))
    answer = renderer.completion_ids(ANSWER)
    rendered.append_completion(answer, [0.0] * len(answer), -1)
    return rendered


async def engine_canary(engine: Engine, renderer: Renderer) -> Canary:
    """What POST /canary answers: the sequence and the engine's logprobs of its completion tokens."""
    rendered, png = canary_sequence(renderer), canary_png()
    start, end = rendered.spans[0]
    sequence = EngineSequence(
        sequence_id="canary",
        token_ids=rendered.token_ids,
        pixels=[await engine.prepare(png) for _ in rendered.images],
        grids=rendered.grids,
    )
    logprobs = await engine.score(sequence, start)
    return Canary(
        token_ids=tuple(rendered.token_ids),
        loss_mask=tuple(rendered.loss_mask),
        logprobs=(*[0.0] * start, *logprobs, *[0.0] * (len(rendered.token_ids) - end)),
        images=tuple(base64.b64encode(png).decode() for _ in rendered.images),
        temperature=1.0,
        policy_version=engine.policy_version,
    )
