"""A window that shows an environment, by matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Window:
    """Pictures one after the other, in a window where matplotlib can open one."""

    def __init__(self, title: str, fps: float) -> None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError('render_mode="human" needs matplotlib: pip install matplotlib') from None
        self._plt: Any = plt
        self._title, self._pause = title, 1.0 / fps
        self._figure: Any = None
        self._image: Any = None

    def show(self, pixels: NDArray[np.uint8]) -> None:
        """Shows a picture until the next one."""
        if self._figure is None or not self._plt.fignum_exists(self._figure.number):
            self._figure, axis = self._plt.subplots(layout="tight")
            axis.set_axis_off()
            axis.set_title(self._title)
            self._image = axis.imshow(pixels)
        self._image.set_data(pixels)
        # Back ends that draw into files have nothing to wait for.
        if self._figure.canvas.required_interactive_framework is None:
            self._figure.canvas.draw()
        else:
            self._plt.pause(self._pause)

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._figure is not None:
            self._plt.close(self._figure)
            self._figure = None
