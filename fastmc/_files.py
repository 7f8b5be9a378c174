"""Writing files so that they appear whole or not at all."""
import contextlib
import os
import tempfile


@contextlib.contextmanager
def replacing(path, mode="w", **options):
    """Open a temporary file beside `path`; rename it to `path` if the block succeeds."""
    path = os.fspath(path)
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
