"""`python -m brimline`."""

import sys

try:
    from brimline.cli import main

    code = main()
except KeyboardInterrupt:  # pressed while it was still being imported
    code = 130
sys.exit(code)
