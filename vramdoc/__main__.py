"""``python -m vramdoc`` is ``vramdoc``."""

from __future__ import annotations

import sys

from vramdoc.cli import main

sys.exit(main())
