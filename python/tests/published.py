"""What the tests of published processes share: the command, and threads of the programs that it looks at."""

from __future__ import annotations

import sys

OFFLOCK = [sys.executable, "-m", "offlock"]

WORK = """
import os, sys, threading, time

def compute():
    while True:
        sum(i * i for i in range(1000))

def serve():
    while True:
        time.sleep(0.001)
"""
