"""A figure that notebooks show."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from .errors import UserError

# Conferences refuse the Type 3 fonts that matplotlib embeds by default.
_FONTS: Any = {"pdf.fonttype": 42, "ps.fonttype": 42}


class ShownFigure(Figure):
    """Notebooks know matplotlib's figures only where pyplot has been imported, which nobody needs here."""

    def savefig(self, *args: Any, **kwargs: Any) -> None:
        """As matplotlib's, with TrueType fonts in PDF and PostScript."""
        with matplotlib.rc_context(_FONTS):
            super().savefig(*args, **kwargs)

    def show(self, warn: bool = True) -> None:
        """Says how a script shows the figure: pyplot, which opens windows, does not know it."""
        raise UserError("figure", "has no window; run.figure(ax=plt.gca()) draws into one, and savefig writes a file")

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()
