"""Writing files so that they appear whole or not at all."""
import contextlib
import os
import secrets


@contextlib.contextmanager
def replacing(path, mode="w", **options):
    """Open a temporary file beside `path`; rename it to `path` if the block succeeds.

    A link keeps its place and its target is replaced. What is no regular file (/dev/stdout, a
    pipe) is written to directly: renaming would put a file in the device's place.

    Raises
    ------
    OSError
        If the folder cannot be written to.
    """
    target = os.path.realpath(os.fsdecode(path))
    if os.path.exists(target) and not os.path.isfile(target):
        with open(path, mode, **options) as file:
            yield file
        return
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, mode.replace("w", "x"), **options) as file:
            yield file
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
