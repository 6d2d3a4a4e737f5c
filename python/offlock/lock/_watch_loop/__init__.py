"""Tells why an event loop is late: `offlock.lock.watch_loop`.

A loop of asyncio is measured where it runs its callbacks (`Handle._run`) and where it sleeps (its selector). Another
loop, such as uvloop's, is measured by a timer that it runs in short intervals. What the loop's thread did meanwhile is
the difference of two readings of its `Gauges`. Only the loop's thread takes these; the watch's own thread samples
stacks, finds the holders of the lock, and tells the user, so that nobody's logging delays the loop.
"""

from .event import LateCount as LateCount
from .event import LateEvent as LateEvent
from .watch import LoopWatch as LoopWatch
from .watch import watch_loop as watch_loop
