"""Console `x11`: a desktop's X server over its unix socket."""

from PIL import Image
from Xlib import X

from training.contracts.types import Action
from workers.desktops import frame_images
from workers.desktops.contract import Endpoints
from workers.desktops.screen_settling import Pace
from workers.desktops.x11.display_connection import X11Display
from workers.desktops.x11.held_input import release_held
from workers.desktops.x11.window_control import Windows
from workers.desktops.x11.xtest_input import X11Input


class X11Console:
    """Pixels, XTEST input, damage notification and windows of one X server."""

    pace = Pace()

    def __init__(self, endpoints: Endpoints) -> None:
        self.display = X11Display(endpoints.display, endpoints.cpu_account)
        self.windows = Windows(self.display)
        self._vnc = endpoints.vnc
        self._input: X11Input | None = None

    @property
    def size(self) -> tuple[int, int]:
        return self.display.size

    def image(self) -> Image.Image:
        size = self.size
        return frame_images.image_of(self.display.pixels(size), *size)

    def color_at(self, x: int, y: int) -> str:
        with self.display.guarded():
            data = self.display.root.get_image(x, y, 1, 1, X.ZPixmap, 0xFFFFFFFF).data
        return f"#{data[2]:02x}{data[1]:02x}{data[0]:02x}"

    def perform(self, action: Action) -> None:
        if self._input is None:
            self._input = X11Input(self.display)
        self._input.perform(action)

    def let_go(self) -> None:
        release_held(self.display, self._vnc)
        if self._input is not None:
            self._input.forget_held()

    def forget_changes(self) -> None:
        self.display.forget_changes()

    def wait_change(self, timeout_s: float) -> bool:
        return self.display.wait_change(timeout_s)

    def cpu_s(self) -> float:
        return self.display.cpu_s()

    def after_reset(self) -> None:
        if self._input is not None:
            self._input.reread_keymap()
            self._input.forget_held()

    def close(self) -> None:
        self.display.close()
