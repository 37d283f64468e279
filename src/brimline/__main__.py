"""`python -m brimline`."""

import sys

from brimline.cli import main

sys.exit(main())
