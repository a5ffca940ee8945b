"""Numbers as every page, message and file shows them: one rounding, one format, one minus sign.

Half is rounded away from zero on the digits that a number is written with, so that 0.825 is "0.83" here, in
`static/js/lib/numbers.js` and on paper. Thousands have commas, a negative number has a real minus sign.
"""

from decimal import ROUND_HALF_UP, Decimal
from math import ceil, floor, isfinite

MINUS = "−"


def plural(number: float, one: str, many: str = "") -> str:
    """The noun for a count: `one` of 1, else `many`, or `one` with an s."""
    return one if number == 1 else many or f"{one}s"


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: "1 entry", "2,167 entries"."""
    return f"{number:,} {plural(number, one, many)}"


def counted_of(number: int, many: str, cap: int | None = None) -> str:
    """The same from the plural alone; above `cap` it is only known that there are more: "10,000+ entries"."""
    if cap is not None and number > cap:
        return f"{cap:,}+ {many}"
    return counted(number, many[:-3] + "y" if many.endswith("ies") else many.removesuffix("s"), many)


def fixed_text(value: float, digits: int = 2, *, signed: bool = False) -> str:
    """With the given decimals: "0.83", "−1,204.5"; `signed` puts a plus before what is above zero."""
    if not isfinite(value):
        return str(value).replace("-", MINUS)
    number = _rounded(Decimal(repr(float(value))), digits)
    return _with_sign(number, f"{abs(number):,.{digits}f}", signed)


def share_text(fraction: float, digits: int = 0) -> str:
    """A share in percent: 0.417 as "42 %"."""
    return f"{percent_digits(fraction, digits)} %"


def percent_digits(fraction: float, digits: int = 0) -> str:
    """A share in percent without its unit, for an interval: "42"."""
    if not isfinite(fraction):
        return str(fraction)
    number = _rounded(Decimal(repr(float(fraction))) * 100, digits)
    return _with_sign(number, f"{abs(number):,.{digits}f}")


def short_text(value: float) -> str:
    """Three digits that count: "0.207", "1.08", "1,204", "1.37 M"."""
    if not isfinite(value):
        return str(value)
    if abs(value) >= 999_500:
        return f"{fixed_text(value / 1e6, 2)} M"
    if abs(value) >= 999.5 or value == round(value):
        return fixed_text(value, 0)
    number = Decimal(repr(float(value)))
    text = f"{float(_rounded(number, 2 - number.adjusted())):.3g}"
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def _rounded(number: Decimal, digits: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)


def _with_sign(number: Decimal, digits: str, signed: bool = False) -> str:
    sign = MINUS if number < 0 else "+" if signed and number > 0 else ""
    return sign + digits


def duration_text(seconds: float) -> str:
    """A time that was measured: "850 ms", "12 s", "3 min 20 s" or "2 h 5 min"."""
    if seconds < 1:
        return f"{fixed_text(seconds * 1000, 0)} ms"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def duration_range_text(low: float, high: float) -> str:
    """Two estimates as a range of whole parts of one unit: "10 to 15 min"."""
    part, unit = next(((part, unit) for limit, part, unit in RANGE_UNITS if high < limit), (86_400, "days"))
    first, last = max(1, floor(low / part)), max(1, ceil(high / part))
    return f"{last} {unit}" if first == last else f"{first} to {last} {unit}"


RANGE_UNITS = ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h"))
"""(longest seconds, seconds of the unit, its name)."""
ROUGH = ((90, 10), (570, 60), (3300, 300), (36_000, 1800), (864_000, 3600))
"""(longest seconds, of whole parts of seconds): what an estimate can claim to know."""


def rough_duration_text(seconds: float) -> str:
    """A time that was estimated, to what an estimate can know: "40 s", "7 min", "25 min", "2 h 30 min"."""
    part = next((part for limit, part in ROUGH if seconds < limit), 86_400)
    whole = max(1, round(seconds / part)) * part
    if part == 86_400:
        return counted(whole // part, "day")
    return f"{whole // 3600} h" if whole % 3600 == 0 else duration_text(whole)
