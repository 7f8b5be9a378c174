"""Writing files so that they appear whole or not at all."""
import contextlib
import os
import tempfile


@contextlib.contextmanager
def replacing(path, mode="w", **options):
    """Open a temporary file beside `path`; rename it to `path` if the block succeeds.

    A link keeps its place and its target is replaced. What is no regular file (/dev/stdout, a
    pipe) is written to directly: renaming would put a file in the device's place.
    """
    path = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, mode, **options) as file:
            yield file
        return
    path = os.path.realpath(path)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".fastmc-")
    try:
        with open(handle, mode, **options) as file:
            yield file
        # mkstemp makes files private; give the result the permissions any new file gets.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
