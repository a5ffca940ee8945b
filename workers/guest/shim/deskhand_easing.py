"""Easing curves under pyautogui's names: where a motion is after the part n of its time, both in 0 .. 1."""

import math
from collections.abc import Callable


def linear(n: float) -> float:
    return n


def _eased(ease_in: Callable[[float], float]) -> tuple[Callable, Callable, Callable]:
    """In, out and in-out of one curve."""

    def ease_out(n: float) -> float:
        return 1 - ease_in(1 - n)

    def ease_in_out(n: float) -> float:
        return ease_in(2 * n) / 2 if n < 0.5 else 1 - ease_in(2 - 2 * n) / 2

    return ease_in, ease_out, ease_in_out


def _bounce_out(n: float) -> float:
    for start, middle, height in ((2.5, 2.625, 0.984375), (2, 2.25, 0.9375), (1, 1.5, 0.75)):
        if n >= start / 2.75:
            return 7.5625 * (n - middle / 2.75) ** 2 + height
    return 7.5625 * n * n


def _elastic_in(n: float) -> float:
    return n if n in (0, 1) else -(2 ** (10 * (n - 1))) * math.sin((n - 1.075) * 2 * math.pi / 0.3)


easeInQuad, easeOutQuad, easeInOutQuad = _eased(lambda n: n**2)
easeInCubic, easeOutCubic, easeInOutCubic = _eased(lambda n: n**3)
easeInQuart, easeOutQuart, easeInOutQuart = _eased(lambda n: n**4)
easeInQuint, easeOutQuint, easeInOutQuint = _eased(lambda n: n**5)
easeInSine, easeOutSine, easeInOutSine = _eased(lambda n: 1 - math.cos(n * math.pi / 2))
easeInExpo, easeOutExpo, easeInOutExpo = _eased(lambda n: 0.0 if n == 0 else 2 ** (10 * (n - 1)))
easeInCirc, easeOutCirc, easeInOutCirc = _eased(lambda n: 1 - math.sqrt(max(0.0, 1 - n * n)))
easeInBack, easeOutBack, easeInOutBack = _eased(lambda n: n * n * (2.70158 * n - 1.70158))
easeInElastic, easeOutElastic, easeInOutElastic = _eased(_elastic_in)
easeInBounce, easeOutBounce, easeInOutBounce = _eased(lambda n: 1 - _bounce_out(1 - n))
