"""Makes a process publish itself: ``python -I -S request.py PID``, with a CPython of the version that the process runs.

`offlock attach` runs this. Where the process cannot be published, it exits with a message that says why. The process gets a
script, which it executes at a safe point of its main thread (PEP 768).
"""

import importlib.machinery
import os
import shutil
import sys
import tempfile
import time

WAIT = 10
"""How long the process may take to reach a safe point, in seconds."""

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "publish.py")
PACKAGE = os.path.dirname(os.path.dirname(SOURCE))


def main(pid: int) -> None:
    """Makes the process publish itself, and returns when it has."""
    check_version()
    folder = tempfile.mkdtemp(prefix="offlock-attach-")
    script, answer = os.path.join(folder, "script.py"), os.path.join(folder, "answer")
    try:
        give(pid, folder)
        with open(SOURCE, encoding="utf-8") as file:
            call = f"publish({os.path.dirname(PACKAGE)!r}, {answer!r})"
            write(pid, script, f"{file.read()}\n\n{call}\n")
        ask(pid, script)
        problem = wait_for(pid, answer)
    except (TimeoutError, KeyboardInterrupt) as error:
        # The process may execute the script later: then it only removes it.
        write(pid, script, f"import os\nos.remove({script!r})\nos.rmdir({folder!r})\n")
        sys.exit(str(error) or 130)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(problem or 0)


def check_version() -> None:
    """Refuses a CPython that cannot ask another process, or for which this package has no extension."""
    series = f"CPython {sys.version_info[0]}.{sys.version_info[1]}"
    if not hasattr(sys, "remote_exec"):
        advice = "start the program with `offlock run -- PROGRAM` instead"
        sys.exit(f"it runs {series}, and attach needs CPython 3.14 or newer: {advice}")
    names = [f"_offlock{suffix}" for suffix in importlib.machinery.EXTENSION_SUFFIXES]
    if not any(os.path.exists(os.path.join(PACKAGE, name)) for name in names):
        advice = f"use the `offlock` command of that {series}"
        sys.exit(f"it runs {series}, for which {PACKAGE} has no extension module ({names[0]}): {advice}")


def write(pid: int, path: str, text: str) -> None:
    """Writes a script that the process may read."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    give(pid, file.name)
    os.replace(file.name, path)


def give(pid: int, path: str) -> None:
    """Makes the process's user the owner, where that is another one."""
    owner = os.stat(f"/proc/{pid}")
    if owner.st_uid != os.geteuid():
        os.chown(path, owner.st_uid, owner.st_gid)


def ask(pid: int, script: str) -> None:
    """Leaves the script to the process."""
    try:
        sys.remote_exec(pid, script)  # type: ignore[attr-defined, unused-ignore]
    except Exception as error:
        sys.exit(explain(error))


def explain(error: BaseException) -> str:
    """Says why the process cannot be asked."""
    text, cause = str(error), error
    while cause.__cause__ is not None or cause.__context__ is not None:
        cause = cause.__cause__ or cause.__context__ or cause
        text = f"{text} ({cause})"
    if isinstance(error, PermissionError) or isinstance(cause, PermissionError):
        ways = (
            "root, the capability CAP_SYS_PTRACE or, for a process of one's own, kernel.yama.ptrace_scope=0"
        )
        return f"the system does not allow to ask it, which takes {ways}: {text}"
    if "not enabled" in text:
        return f"PYTHON_DISABLE_REMOTE_DEBUG or -X disable-remote-debug forbids to ask it: {text}"
    return text


def wait_for(pid: int, answer: str) -> str:
    """Returns the process's answer."""
    end = time.monotonic() + WAIT
    while not os.path.exists(answer):
        if not os.path.exists(f"/proc/{pid}"):
            sys.exit("the process has ended")
        if time.monotonic() > end:
            raise TimeoutError(
                f"its main thread has executed no Python code for {WAIT} s, at which it could have been asked: it waits for "
                "something, or runs a long function in C"
            )
        time.sleep(0.01)
    with open(answer, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
