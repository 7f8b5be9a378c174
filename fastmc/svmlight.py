"""Reading and writing of the LIBSVM text format.

A line is `label index:value index:value ... # comment`; indices start at 1 and increase.
"""
import bz2
import codecs
import contextlib
import gzip
import lzma
import operator
import os
import zlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from fastmc._files import replacing
from fastmc._options import check_count
from fastmc._progress import Progress
from fastmc._svmlight import Parser
from fastmc._threads import count_threads
from fastmc._types import Array, FilePath, Matrix

__all__ = ["SvmlightError", "dump_svmlight", "load_svmlight"]

_MAX_INDEX = 2**31 - 1
_BLOCK = 1 << 20        # bytes read at a time; Ctrl-C acts between two blocks
_ROWS = 1000            # rows written at a time


class SvmlightError(ValueError):
    """A file that does not follow the format; names the file, the line and the token."""


def load_svmlight(path: FilePath, n_features: int | None = None, dtype: DTypeLike = np.float64, *,
                  ignore_extra: bool = False, verbose: int = 0,
                  n_threads: int = 1) -> tuple[sp.csr_matrix, Array]:
    """Read a data file in LIBSVM format.

    Names that end in .gz, .bz2 or .xz are decompressed while reading. `#` starts a
    comment. Indices start at 1 and increase within a row; the base is never guessed.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    n_features : int, optional
        Number of columns of X. By default the largest index in the file.
    dtype : numpy.float64 or numpy.float32
        Kind of the values. float32 rounds the float64 value once more.
    ignore_extra : bool, keyword only
        Drop entries with an index above n_features instead of refusing them.
    verbose : int, keyword only
        1 shows progress on standard error, if reading takes longer than two seconds.
    n_threads : int, keyword only
        Threads that parse, beside the calling one, which reads, decompresses and puts their parts
        together; 0: as many as there are cores. 1: no other thread. The result does not depend on it.
        Two save up to a fifth of the time on plain text and .gz, and next to nothing on .bz2, where
        decompression is nearly all of it. Each holds a part of about 3 MB, and one more waits.

    Returns
    -------
    X : scipy.sparse.csr_matrix, shape (n_samples, n_features)
        Values are those of `float(text)`, bit for bit. Zeros are not stored, but
        their index counts for the width. Indices are int32 and sorted.
    y : numpy.ndarray, shape (n_samples,)
        The labels, kept exactly: int64 when all are whole numbers, else float64.

    Raises
    ------
    SvmlightError
        A ValueError that names the file, the line and what is wrong there, also for
        files without rows and for damaged compressed files.
    ValueError
        For an n_features, dtype or n_threads out of range.
    OSError
        When the file cannot be opened or read.

    Examples
    --------
    >>> import fastmc
    >>> fastmc.dump_svmlight([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1, 2], "two.svm.bz2")
    >>> X, y = fastmc.load_svmlight("two.svm.bz2")
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1, 2])
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {dtype}")
    limit = _MAX_INDEX if n_features is None else operator.index(n_features)
    if not 1 <= limit <= _MAX_INDEX:
        raise ValueError(f"n_features must be between 1 and {_MAX_INDEX}, not {n_features}")
    check_count("n_threads", n_threads, 0)
    parser = _parse(path, (limit, ignore_extra, dtype == np.float32), count_threads(n_threads), verbose)
    return _to_arrays(parser, n_features, dtype)


def _parse(path, options, n_threads, verbose):
    """A parser with these options that has read the file."""
    name, parser = os.fsdecode(path), Parser(*options)
    pieces = read_pieces(path, verbose)
    if n_threads == 1:
        parts = ((text, None) for text in pieces)
    else:
        parts = _read_ahead(pieces, options, n_threads)
    with contextlib.closing(parts):     # ends the threads, whatever happens
        for text, part in parts:
            if part is not None and parser.append(part):
                continue
            fault = parser.feed(text)
            if fault is not None:
                raise SvmlightError(f"{name}, line {parser.line}: {fault}")
    if parser.n_rows == 0:
        raise SvmlightError(f"{name}: no rows")
    return parser


def _read_ahead(pieces, options, n_threads):
    """Yield the pieces in order, each with what `_parse_part` made of it in another thread."""
    waiting = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for text in pieces:
                waiting.append((text, pool.submit(_parse_part, text, options)))
                del text        # or it would stay until the next one is read
                if len(waiting) > n_threads:
                    yield _first(waiting)
        except (SvmlightError, OSError):    # a fault in the text before comes first
            while waiting:
                yield _first(waiting)
            raise
        while waiting:
            yield _first(waiting)


def _first(waiting):
    text, future = waiting.popleft()
    return text, future.result()


def _parse_part(text, options):
    """A parser that has read this text alone; None if it has a fault or may be the file's start."""
    part = Parser(*options)
    return None if text.startswith(codecs.BOM_UTF8) or part.feed(text) else part


def read_pieces(path, verbose=0):
    """Yield the bytes of a file, unpacked if its name asks for it, in pieces of whole lines.

    Raises
    ------
    SvmlightError
        For damaged compressed files.
    OSError
        When the file cannot be opened or read.
    """
    name = os.fsdecode(path)
    with open(path, "rb") as raw, _codec(raw, path, "rb") as stream:
        lines, done = _whole_lines(stream), 0
        # What cannot be measured, such as a pipe, has no progress either.
        progress = Progress(verbose and raw.seekable(), os.fstat(raw.fileno()).st_size, "B",
                            f"reading {os.path.basename(name)}")
        with contextlib.closing(progress):
            while (text := _next_lines(lines, name)) is not None:
                if progress.on:
                    progress.show("", steps=raw.tell() - done)
                    done = raw.tell()
                yield text


def _next_lines(lines, name):
    """The next piece of text, None at the end; damaged files are the format's error."""
    try:
        return next(lines, None)
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise           # from the system, not from gzip or bz2
        raise SvmlightError(f"{name}: damaged or cut compressed file ({error})") from error


def _whole_lines(stream):
    """Yield the stream in pieces that end with a newline, about _BLOCK bytes each."""
    parts = []
    while block := stream.read(_BLOCK):
        cut = block.rfind(b"\n") + 1
        if cut == 0:
            parts.append(block)
            continue
        parts.append(memoryview(block)[:cut])      # not copied before it is joined
        yield b"".join(parts)
        parts = [block[cut:]]
    rest = b"".join(parts)
    if rest:
        yield rest + b"\n"


def _to_arrays(parser, n_features, dtype):
    """Wrap the parser's buffers; only the row pointers are computed."""
    lengths, labels, indices, values = parser.finish()
    indptr = np.zeros(parser.n_rows + 1, np.int32 if parser.nnz <= _MAX_INDEX else np.int64)
    np.cumsum(np.frombuffer(lengths, np.int32), dtype=indptr.dtype, out=indptr[1:])
    arrays = np.frombuffer(values, dtype), np.frombuffer(indices, np.int32), indptr
    X = sp.csr_matrix(arrays, shape=(parser.n_rows, n_features or parser.width), copy=False)
    X.has_canonical_format = True
    return X, np.frombuffer(labels, np.int64 if parser.whole_labels else np.float64)


def _codec(raw, path, mode):
    """The stream that packs or unpacks an open binary file; the kind is told by the name."""
    ending = os.path.splitext(os.fsdecode(path))[1].lower()
    if ending == ".gz":
        # No name and no time in the header: equal data give equal files.
        return gzip.GzipFile("", mode, 6, raw, mtime=0)
    if ending not in (".bz2", ".xz"):
        return contextlib.nullcontext(raw)
    if mode == "wb":
        return bz2.BZ2File(raw, mode) if ending == ".bz2" else lzma.LZMAFile(raw, mode)
    return contextlib.nullcontext(_Unpacked(raw, bz2.BZ2Decompressor if ending == ".bz2" else lzma.LZMADecompressor))


class _Unpacked:
    """Reads .bz2 and .xz, stream after stream.

    BZ2File and LZMAFile take a damaged stream after a good one for the end of the file, and rows would be lost.
    """

    def __init__(self, raw, unpacker):
        self.raw, self.new_unpacker, self.unpacker = raw, unpacker, unpacker()

    def read(self, size):
        """Up to `size` bytes, none at the end only."""
        text = b""
        while not text:
            packed = b""
            if self.unpacker.eof:
                packed = self.next_stream()
                if not packed:
                    break
                self.unpacker = self.new_unpacker()
            elif self.unpacker.needs_input:
                packed = self.raw.read(_BLOCK)
                if not packed:
                    raise EOFError("it ends within a stream")
            text = self.unpacker.decompress(packed, size)
        return text

    def next_stream(self):
        """The first bytes of the stream that follows; zeros between streams and after the last are filling."""
        packed = self.unpacker.unused_data.lstrip(b"\0")
        while not packed and (block := self.raw.read(_BLOCK)):
            packed = block.lstrip(b"\0")
        return packed


def dump_svmlight(X: Matrix, y: ArrayLike, path: FilePath) -> None:
    """Write a data file in LIBSVM format.

    The file appears under its name only when it is complete. Values are written so
    that `load_svmlight` reads the same bits. Zeros are not written, so pass the
    number of columns when reading back, should the last ones be empty.

    Parameters
    ----------
    X : sparse or dense 2-D array of numbers, shape (n_samples, n_features)
        Finite values.
    y : array-like of numbers, shape (n_samples,)
        The labels. Whole numbers are written as such and must fit 64 bits.
    path : str or os.PathLike
        The file; compressed when the name ends in .gz, .bz2 or .xz.

    Raises
    ------
    ValueError
        For shapes that do not match, no rows, values that are not finite numbers and
        labels that cannot be kept exactly.
    OSError
        When the file cannot be written.
    """
    X = _checked_matrix(X)
    labels = _label_texts(y)
    if len(labels) != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows, y has {len(labels)} labels")
    with replacing(path, "wb") as raw, _codec(raw, path, "wb") as stream:
        for start in range(0, X.shape[0], _ROWS):
            stream.write(_format_rows(X, labels, start, min(start + _ROWS, X.shape[0])))


def _checked_matrix(X) -> sp.csr_array:
    X = sp.csr_array(X)
    if X.ndim != 2 or X.shape[0] == 0:
        raise ValueError(f"X must be two-dimensional with at least one row, not of shape {X.shape}")
    if X.shape[1] > _MAX_INDEX:
        raise ValueError(f"X has {X.shape[1]} columns; indices go up to {_MAX_INDEX}")
    if X.dtype.kind not in "biuf" or X.dtype.itemsize > 8:
        raise ValueError(f"X must hold real numbers of at most 64 bits, not {X.dtype}")
    if not np.isfinite(X.data).all():
        raise ValueError("X holds values that are not finite")
    if not X.has_canonical_format:
        X = X.copy()        # the caller's arrays stay as they are
        X.sum_duplicates()
    return X


def _label_texts(y):
    y = np.asarray(y)
    if y.ndim != 1 or y.dtype.kind not in "biuf" or y.dtype.itemsize > 8:
        raise ValueError(f"y must be a one-dimensional array of real numbers, not {y.dtype} "
                         f"of shape {y.shape}")
    if y.dtype.kind == "b":
        y = y.astype(np.int64)
    return [_label_text(label) for label in y.tolist()]


def _label_text(label):
    if isinstance(label, float) and not label.is_integer():     # nan and inf are not whole
        if not np.isfinite(label):
            raise ValueError(f"y holds a label that is not finite: {label}")
        return repr(label)
    if not -2**63 <= label < 2**63:
        raise ValueError(f"label {label} does not fit 64 bits")
    return str(int(label))


def _format_rows(X, labels, start, stop):
    first, last = X.indptr[start], X.indptr[stop]
    values = X.data[first:last]
    if values.dtype.kind in "bf":
        values = values.astype(np.float64, copy=False)
    # The repr of a Python float is the shortest text that reads back to the same bits.
    entries = [f" {index + 1}:{value!r}".removesuffix(".0") if value else ""
               for index, value in zip(X.indices[first:last].tolist(), values.tolist())]
    bounds = (X.indptr[start:stop + 1] - first).tolist()
    return "".join(
        f"{label}{''.join(entries[begin:end])}\n"
        for label, begin, end in zip(labels[start:stop], bounds, bounds[1:])
    ).encode("ascii")
