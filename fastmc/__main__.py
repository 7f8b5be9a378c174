"""The command line, `fastmc` or `python -m fastmc`: Ctrl-C ends it from its first moment on."""
import os
import signal
import sys


def main():
    """Run the command line of this process; return its exit code."""
    # An exception would run through half-imported libraries, which may swallow or print it.
    catching = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if catching:
        signal.signal(signal.SIGINT, interrupted)
    from fastmc import cli
    if catching:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return cli.main()


def interrupted(number, frame):
    os.write(sys.stderr.fileno(), b"interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
