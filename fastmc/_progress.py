"""Progress on standard error of what takes longer than two seconds."""
import sys
import time

# Nothing is shown before: short work needs no bar.
DELAY = 2.0


class Progress:
    """A tqdm bar where tqdm is installed, at most a line a second otherwise; nothing if off.

    Parameters
    ----------
    verbose : bool or int
    total : int or None
        Number of steps, None if unknown.
    unit : str
        Name of a step; "B" for bytes.
    doing : str
        What is being done, in front of the bar.
    """

    def __init__(self, verbose, total, unit="pass", doing=""):
        self.on, self.bar, self.count = bool(verbose), None, 0
        self.name, self.began, self.shown = doing, time.perf_counter(), DELAY - 1.0
        self.unit = unit
        if self.on:
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self.bar = tqdm(total=total, unit=unit, unit_scale=unit == "B", desc=doing or None,
                            delay=DELAY, leave=False, file=sys.stderr)

    def show(self, text, seconds=None, steps=1):
        """One more step, or several, and what to say of it."""
        self.count += steps
        if self.bar is not None:
            self.bar.set_postfix_str(text, refresh=False)
            self.bar.update(steps)
        elif self.on:
            seconds = time.perf_counter() - self.began if seconds is None else seconds
            if seconds - self.shown >= 1.0:
                self.shown = seconds
                name = f"{self.name}: " * bool(self.name)
                text = f": {text}" * bool(text)
                print(f"{name}{self.unit} {self.count}{text}, {seconds:.1f} s", file=sys.stderr)

    def close(self):
        if self.bar is not None:
            self.bar.close()


def say(line):
    """Print a line at once, above a bar that is being shown."""
    try:
        from tqdm import tqdm
    except ImportError:
        print(line)
    else:
        tqdm.write(line)
    sys.stdout.flush()
