"""Screens that look like the desktops of First desk, drawn without a desktop: for pages and benchmarks."""

from functools import cache
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

SIZE = (512, 384)
MENU = ("Invoices", "Customers", "Suppliers", "Inventory", "Reports", "Settings", "Help", "Quit")
ROW_TOP, ROW_HEIGHT, ROW_LEFT = 76, 28, 96


@cache
def _font(size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    try:
        return ImageFont.truetype("DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default(size)


def _desktop(title: str) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """A background, a panel at the bottom, and one window with `title`."""
    image = Image.new("RGB", SIZE, (46, 74, 98))
    draw = ImageDraw.Draw(image)
    for y in range(SIZE[1]):
        shade = y * 40 // SIZE[1]
        draw.line([(0, y), (SIZE[0], y)], fill=(40 + shade // 2, 66 + shade, 92 + shade))
    draw.rectangle([0, 362, 512, 384], fill=(32, 34, 40))
    draw.rectangle([6, 366, 60, 380], fill=(64, 68, 78))
    draw.text((14, 366), "Menu", font=_font(11), fill=(230, 232, 236))
    draw.text((460, 366), "14:02", font=_font(11), fill=(230, 232, 236))
    draw.rectangle([60, 30, 452, 340], fill=(236, 236, 238), outline=(24, 26, 30))
    draw.rectangle([61, 31, 451, 54], fill=(58, 62, 70))
    draw.text((70, 35), title, font=_font(12), fill=(240, 240, 244))
    for place, colour in enumerate(((218, 88, 80), (226, 176, 70), (96, 178, 96))):
        draw.ellipse([434 - place * 18, 37, 445 - place * 18, 48], fill=colour)
    return image, draw


def menu_screen(highlighted: int, *, chosen: str = "") -> bytes:
    """PNG of a list with one highlighted row; `chosen` shows the dialog that follows."""
    image, draw = _desktop("Choose a section")
    for row, label in enumerate(MENU):
        top = ROW_TOP + row * ROW_HEIGHT
        is_on = row == highlighted
        box = [ROW_LEFT, top, ROW_LEFT + 320, top + ROW_HEIGHT - 3]
        draw.rectangle(box, fill=(52, 120, 210) if is_on else (252, 252, 252), outline=(206, 208, 212))
        draw.text((ROW_LEFT + 12, top + 5), label, font=_font(13), fill=(255,) * 3 if is_on else (40, 42, 48))
    if chosen:
        draw.rectangle([140, 140, 372, 230], fill=(248, 248, 250), outline=(60, 62, 70), width=2)
        draw.text((160, 160), f"Opened: {chosen}", font=_font(14), fill=(30, 32, 38))
        draw.rectangle([300, 194, 356, 218], fill=(52, 120, 210))
        draw.text((316, 199), "OK", font=_font(12), fill=(255, 255, 255))
    return _png(image)


def _png(image: Image.Image) -> bytes:
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
