"""Writing files so that they appear whole or not at all."""
import contextlib
import errno
import os
import secrets


@contextlib.contextmanager
def replacing(path, mode="w", **options):
    """Open a temporary file beside `path`; rename it to `path` if the block succeeds.

    Raises
    ------
    OSError
        If the folder cannot be written to, or `path` is something else than a file.
    """
    target = os.path.realpath(os.fsdecode(path))
    if os.path.exists(target) and not os.path.isfile(target):
        raise OSError(errno.EINVAL, "not a regular file", os.fsdecode(path))
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, mode.replace("w", "x"), **options) as file:
            yield file
        os.replace(temporary, target)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename == temporary:
            error.filename = os.fsdecode(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
