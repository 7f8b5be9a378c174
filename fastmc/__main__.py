"""python -m fastmc"""
import sys

from fastmc.cli import main

sys.exit(main())
