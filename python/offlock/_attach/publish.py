"""Publishes the process that executes this: `offlock attach` makes it do so at a safe point of its main thread.

The command adds a call of `publish`. CPython executes the whole in a namespace of its own.
"""

import os
import sys


def publish(packages: str, answer: str) -> None:
    """Publishes this process with the offlock that it has, or that of the folder `packages`.

    The file `answer` gets the problem, or nothing.
    """
    problem = ""
    # The process must not find the other packages beside offlock.
    sys.path.append(packages)
    try:
        from offlock import lock
        from offlock._offlock import lock as native

        problem = native.switched_off() or ""
        lock.publish()
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    finally:
        sys.path.remove(packages)
    with open(f"{answer}.new", "w", encoding="utf-8") as file:
        file.write(problem)
    os.replace(f"{answer}.new", answer)
