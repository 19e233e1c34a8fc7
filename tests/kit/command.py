"""The command line, as a process of its own."""

import sys

INTERLOCK = [sys.executable, "-c", "from interlock._cli import main; exit(main())"]
