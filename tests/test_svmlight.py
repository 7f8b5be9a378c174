"""The LIBSVM format: what is read, what is refused and how, and that nothing is rounded."""
import bz2
import gzip
import lzma
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fastmc import svmlight
from fastmc.svmlight import SvmlightError, dump_svmlight, load_svmlight

ENDINGS = ["", ".gz", ".bz2", ".xz"]
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture
def load(tmp_path):
    """Write bytes to a file and read it back."""
    def load_text(text, **options):
        path = tmp_path / "a.svm"
        path.write_bytes(text)
        return load_svmlight(path, **options)
    return load_text


def bits(values):
    return np.asarray(values, dtype=np.float64).view(np.int64).tolist()


# ---------------------------------------------------------------- what is read

GOOD = {
    "plain": (b"1 1:1 3:2\n2 2:-1\n", [[1, 0, 2], [0, -1, 0]], [1, 2]),
    "no newline at the end": (b"1 1:1\n2 1:-1", [[1], [-1]], [1, 2]),
    "comment after a row": (b"1 1:1 # a:b\n2 1:-1\n", [[1], [-1]], [1, 2]),
    "comment line first": (b"# head\n1 1:1\n2 1:-1\n", [[1], [-1]], [1, 2]),
    "comment line between, indented": (b"1 1:1\n \t# x\n2 1:-1\n", [[1], [-1]], [1, 2]),
    "comment without a blank": (b"1#c\n2 1:-1#c\n", [[0], [-1]], [1, 2]),
    "comment with odd bytes": (b"1 1:1 # \x00\xff # 2:3\n", [[1]], [1]),
    "comment at the end, no newline": (b"1 1:1\n# end", [[1]], [1]),
    "blank lines at the end": (b"1 1:1\n2 1:-1\n\n", [[1], [-1]], [1, 2]),
    "blank lines and comments at the end": (b"1 1:1\n \n\t\r\n# x\n\n", [[1]], [1]),
    "CR LF": (b"1 1:1\r\n2 1:-1\r\n", [[1], [-1]], [1, 2]),
    "CR LF, empty rows": (b"1\r\n2 1:-1 \r\n\r\n", [[0], [-1]], [1, 2]),
    "CR LF after a comment": (b"1 1:1 # a\r\n#\r\n2 1:-1\r\n", [[1], [-1]], [1, 2]),
    "blanks and tabs": (b"  1 1:1\t \n2\t1:-1  \n", [[1], [-1]], [1, 2]),
    "plus signs": (b"+1 1:+1\n-1 1:-1\n", [[1], [-1]], [1, -1]),
    "exponents": (b"1 1:1e-3 2:1E+2\n2 1:-1.5e0\n", [[0.001, 100], [-1.5, 0]], [1, 2]),
    "bare points": (b"1 1:.5 2:2.\n", [[0.5, 2]], [1]),
    "leading zeros": (b"01 001:00.50\n", [[0.5]], [1]),
    "byte order mark": (b"\xef\xbb\xbf1 1:1\n2 1:-1\n", [[1], [-1]], [1, 2]),
    "byte order mark, comment": (b"\xef\xbb\xbf# a\n1 1:1\n", [[1]], [1]),
    "zeros count for the width": (b"1 1:0 2:0\n2 1:-1\n", [[0, 0], [-1, 0]], [1, 2]),
    "row without entries": (b"1\n2 1:-1\n", [[0], [-1]], [1, 2]),
    "only rows without entries": (b"1\n2\n", np.zeros((2, 0)), [1, 2]),
}


@pytest.mark.parametrize("text, X, y", GOOD.values(), ids=GOOD)
@pytest.mark.parametrize("block", [1, 2, 3, 4, 5, 6, 7, None])
@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_good_text(load, monkeypatch, text, X, y, block, n_threads):
    if block:
        monkeypatch.setattr(svmlight, "_BLOCK", block)
    X_read, y_read = load(text, n_threads=n_threads)
    np.testing.assert_array_equal(X_read.toarray(), X)
    np.testing.assert_array_equal(y_read, y)
    assert X_read.shape == np.shape(X)
    assert y_read.dtype == np.int64


def test_kind_of_the_result(load):
    X, y = load(b"1 1:0 2:5 4:0\n2 3:-0.0\n")
    assert isinstance(X, sp.csr_matrix)
    assert (X.indices.dtype, X.indptr.dtype, X.data.dtype) == (np.int32, np.int32, np.float64)
    assert X.nnz == 1 and X.shape == (2, 4)     # zeros are not stored
    assert X.has_sorted_indices and X.has_canonical_format
    X.data[0] = 7.0         # the arrays are the caller's own
    y[0] = 3
    assert X[0, 1] == 7.0 and y.tolist() == [3, 2]


def test_a_row_of_5000_entries(load):
    X, _ = load(b"1 " + b" ".join(b"%d:%d" % (i, i) for i in range(1, 5001)))
    np.testing.assert_array_equal(X.toarray(), [np.arange(1, 5001)])


def test_the_densest_text(load):
    """No text holds more rows or entries per byte; the buffers are made for this."""
    X, y = load(b"1\n" * 100_000)
    assert X.shape == (100_000, 0) and y.sum() == 100_000
    X, y = load(b"1 1:1 2:2 3:3 4:4 5:5 6:6 7:7 8:8 9:9\n" * 20_000)
    np.testing.assert_array_equal(X.toarray(), np.tile(np.arange(1, 10), (20_000, 1)))


def test_the_largest_index(load):
    X, _ = load(b"1 2147483647:2\n")
    assert X.shape == (1, 2**31 - 1)
    assert X.indices.tolist() == [2**31 - 2] and X.indices.dtype == np.int32


@pytest.mark.parametrize("ending", ENDINGS + [".BZ2"])
def test_compressed(tmp_path, ending):
    path = tmp_path / f"a.svm{ending}"
    path.write_bytes(PACK[ending.lower()](b"1 1:1 # x\r\n2 1:-1"))
    for name in (path, str(path), os.fsencode(path)):
        X, y = load_svmlight(name)
        assert X.toarray().tolist() == [[1], [-1]] and y.tolist() == [1, 2]


# ---------------------------------------------------------------- labels

@pytest.mark.parametrize("texts, labels", [
    ("1 2", [1, 2]),
    ("3000000000 -1", [3000000000, -1]),
    ("9007199254740993 9007199254740992", [2**53 + 1, 2**53]),
    ("9223372036854775807 -9223372036854775808", [2**63 - 1, -2**63]),
    ("1.0 -2.00 3.", [1, -2, 3]),
    ("1e2 1500e-2 1.5E1", [100, 15, 15]),
    ("9007199254740993.0 900719925474099300e-2", [2**53 + 1, 2**53 + 1]),
    ("1.00000000000000000000000000 0e999999999999999999999 -0.0", [1, 0, 0]),
])
def test_whole_labels_are_kept_exactly(load, texts, labels):
    _, y = load(texts.replace(" ", "\n").encode())
    assert y.dtype == np.int64 and y.tolist() == labels


@pytest.mark.parametrize("texts, labels", [
    ("1.2 1.8", [1.2, 1.8]),
    ("3 -0.5 4", [3.0, -0.5, 4.0]),
    ("9007199254740994 1.5", [2.0**53 + 2, 1.5]),
    ("9223372036854774784 1.5", [2.0**63 - 1024, 1.5]),
    ("-9223372036854775808 1.5", [-2.0**63, 1.5]),
    ("0.1234567890123456789012345 1e-400", [0.12345678901234568, 0.0]),
    ("1.00000000000000000000000001", [1.0]),
])
def test_other_labels_are_float64(load, texts, labels):
    _, y = load(texts.replace(" ", "\n").encode())
    assert y.dtype == np.float64 and bits(y) == bits(labels)


def test_labels_turn_to_float_across_blocks(load, monkeypatch):
    monkeypatch.setattr(svmlight, "_BLOCK", 3)
    _, y = load(b"1\n2\n3\n4.5\n5\n")
    assert y.tolist() == [1, 2, 3, 4.5, 5]


# ---------------------------------------------------------------- what is refused

BAD = [
    (b"1 0:1 2:1\n2 1:-1\n", 1, "index 0 in '0:1': indices must start at 1"),
    (b"1 1:1\n2 -1:2\n", 2, "index -1 in '-1:2': indices must start at 1"),
    (b"1 3:1 2:1\n2 1:-1\n", 1, "index 2 does not follow index 3 (indices must increase)"),
    (b"1 2:1 2:1\n2 1:-1\n", 1, "index 2 does not follow index 2 (indices must increase)"),
    (b"1 1:1\n" * 10 + b"1 7:1 3:1\n", 11,
     "index 3 does not follow index 7 (indices must increase)"),
    (b"1 7:0 3:1\n", 1, "index 3 does not follow index 7 (indices must increase)"),
    (b"1 qid:3 1:1\n2 qid:3 1:-1\n", 1, "'qid:3': qid is not supported"),
    (b"1 1:1\n\n2 1:-1\n", 2,
     "blank line before a row (only the end of a file may hold blank lines)"),
    (b"1 1:1\n \r\n\n# c\nx\n", 2,
     "blank line before a row (only the end of a file may hold blank lines)"),
    (b"\n1 1:1\n", 1, "blank line before a row (only the end of a file may hold blank lines)"),
    (b"1 1: 1\n2 1:-1\n", 1, "no value in '1:'"),
    (b"1 3:\n", 1, "no value in '3:'"),
    (b"1 3:#2\n", 1, "no value in '3:'"),
    (b"1 :3\n", 1, "no index in ':3'"),
    (b"1 :\n", 1, "no index in ':'"),
    (b"1 3\n", 1, "'3' is not of the form index:value"),
    (b"# c\n1 1:1 x\n", 2, "'x' is not of the form index:value"),
    (b"1 3:4:5\n", 1, "value in '3:4:5' is not a number"),
    (b"1 +3:1\n", 1, "index in '+3:1' is not a whole number"),
    (b"1 1.0:2\n", 1, "index in '1.0:2' is not a whole number"),
    (b"1 1_0:2\n", 1, "index in '1_0:2' is not a whole number"),
    (b"1 0x1:2\n", 1, "index in '0x1:2' is not a whole number"),
    (b"1 3000000000:1\n2 1:-1\n", 1,
     "index 3000000000 is too large (indices go up to 2147483647)"),
    (b"1 2147483648:0\n", 1, "index 2147483648 is too large (indices go up to 2147483647)"),
    (b"1 18446744073709551617:1\n", 1,     # 1 again, were it counted in 64 bits
     "index 18446744073709551617 is too large (indices go up to 2147483647)"),
    (b"1 1" + b"0" * 30 + b":1\n", 1,
     "index 1" + "0" * 30 + " is too large (indices go up to 2147483647)"),
    (b"1 1:nan\n2 1:-1\n", 1, "non-finite value in '1:nan'"),
    (b"1 1:inf\n2 1:-1\n", 1, "non-finite value in '1:inf'"),
    (b"1 1:1\n1 1:+inf\n", 2, "non-finite value in '1:+inf'"),
    (b"1 1:-Infinity\n", 1, "non-finite value in '1:-Infinity'"),
    (b"1 1:1e400\n", 1, "non-finite value in '1:1e400'"),
    (b"1 1:-1e99999999999999999999\n", 1, "non-finite value in '1:-1e99999999999999999999'"),
    (b"1 1:0x10\n2 1:-1\n", 1, "value in '1:0x10' is not a number"),
    (b"1 1:1_0\n", 1, "value in '1:1_0' is not a number"),
    (b"1 1:1,5\n", 1, "value in '1:1,5' is not a number"),
    (b"1 1:1.2.3\n", 1, "value in '1:1.2.3' is not a number"),
    (b"1 1:.\n", 1, "value in '1:.' is not a number"),
    (b"1 1:+\n", 1, "value in '1:+' is not a number"),
    (b"1 1:+-1\n", 1, "value in '1:+-1' is not a number"),
    (b"1 1:e5\n", 1, "value in '1:e5' is not a number"),
    (b"1 1:1e\n", 1, "value in '1:1e' is not a number"),
    (b"1 1:1e+\n", 1, "value in '1:1e+' is not a number"),
    (b"1 1:1d3\n", 1, "value in '1:1d3' is not a number"),
    (b"1 1:1\x00\n", 1, "value in '1:1\\x00' is not a number"),
    (b"1 1:\xc3\xa9\n", 1, "value in '1:\\xe9' is not a number"),
    (b"1 1:1\x0b2:1\n", 1, "value in '1:1\\x0b2:1' is not a number"),
    (b"1 \x00:1\n", 1, "index in '\\x00:1' is not a whole number"),
    (b"1 \xd9\xa3:1\n", 1, "index in '\\u0663:1' is not a whole number"),
    (b"1 1:1\n\x00\n", 2, "label '\\x00' is not a number"),
    (b"\xff\xfe1\x00 1:1\n", 1, "label '\\\\xff\\\\xfe1\\x00' is not a number"),
    (b"1 1:1\n\xef\xbb\xbf2 1:1\n", 2, "label '\\ufeff2' is not a number"),
    (b"cat 1:1\ndog 1:-1\n", 1, "label 'cat' is not a number"),
    (b"0x1 1:1\n", 1, "label '0x1' is not a number"),
    (b"1_0 1:1\n", 1, "label '1_0' is not a number"),
    (b"nan 1:1\n2 1:-1\n", 1, "non-finite label 'nan'"),
    (b"1 1:1\n-inf 1:-1\n", 2, "non-finite label '-inf'"),
    (b"1,2 1:1\n", 1, "label '1,2': several labels on a row are not supported"),
    (b" 1:1\n", 1, "no label before '1:1'"),
    (b"99999999999999999999 1:1\n", 1, "label '99999999999999999999' cannot be kept exactly "
     "(whole numbers must fit 64 bits)"),
    (b"9223372036854775808\n", 1, "label '9223372036854775808' cannot be kept exactly "
     "(whole numbers must fit 64 bits)"),
    (b"1\n1e19\n", 2, "label '1e19' cannot be kept exactly (whole numbers must fit 64 bits)"),
    (b"1e400\n", 1, "label '1e400' cannot be kept exactly (whole numbers must fit 64 bits)"),
    (b"1234567890123456789.5\n", 1, "label '1234567890123456789.5' cannot be kept exactly "
     "(whole numbers must fit 64 bits)"),
    (b"1\n9007199254740993\n3\n1.5\n", 2, "label 9007199254740993 cannot be kept exactly "
     "beside labels that are not whole numbers"),
    (b"1.5\n1\n9223372036854775807\n", 3, "label 9223372036854775807 cannot be kept exactly "
     "beside labels that are not whole numbers"),
    (b"1 1:1\r2 1:-1\r", 1, "carriage return inside the line (lines end with LF or CR LF)"),
    (b"1 1:1 # c\r2 1:1\r\n", 1, "carriage return inside the line (lines end with LF or CR LF)"),
    (b"1 1:1\n\r\r\n", 2, "carriage return inside the line (lines end with LF or CR LF)"),
]


@pytest.mark.parametrize("text, line, message", BAD, ids=[repr(text)[2:40] for text, *_ in BAD])
@pytest.mark.parametrize("block", [1, 4, None])
@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_bad_text(tmp_path, monkeypatch, text, line, message, block, n_threads):
    if block:
        monkeypatch.setattr(svmlight, "_BLOCK", block)
    monkeypatch.chdir(tmp_path)
    with open("train.svm", "wb") as stream:
        stream.write(text)
    with pytest.raises(SvmlightError) as caught:
        load_svmlight("train.svm", n_threads=n_threads)
    assert str(caught.value) == f"train.svm, line {line}: {message}"
    assert isinstance(caught.value, ValueError)


def test_a_long_token_is_cut_in_the_message(load):
    with pytest.raises(SvmlightError) as caught:
        load(b"1 1:" + b"x" * 10**6)
    assert str(caught.value).endswith("line 1: value in '1:" + "x" * 58 + "' is not a number")


@pytest.mark.parametrize("text", [b"", b"\n", b" \r\n\n", b"# a\n", b"\xef\xbb\xbf", b"#"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_no_rows(tmp_path, text, ending):
    path = tmp_path / f"empty.svm{ending}"
    path.write_bytes(PACK[ending](text))
    with pytest.raises(SvmlightError) as caught:
        load_svmlight(path)
    assert str(caught.value) == f"{path}: no rows"


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("harm", ["cut", "not compressed", "bit flipped"])
def test_damaged_compressed_file(tmp_path, ending, harm):
    packed = PACK[ending](b"".join(b"1 1:%d\n" % i for i in range(5000)))
    damaged = {
        "cut": packed[:-10],
        "not compressed": b"1 1:1\n" * 10,
        "bit flipped": packed[:200] + bytes([packed[200] ^ 0x55]) + packed[201:],
    }[harm]
    path = tmp_path / f"train.svm{ending}"
    path.write_bytes(damaged)
    with pytest.raises(SvmlightError) as caught:
        load_svmlight(path)
    # A flipped bit may also show up as a wrong line in the text that was unpacked before.
    start = str(path) if harm == "bit flipped" else f"{path}: damaged or cut compressed file ("
    assert str(caught.value).startswith(start)


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("between", [b"", b"\0" * 4, b"\0" * (3 << 20)])
def test_stream_after_stream(tmp_path, ending, between):
    """As `cat` puts compressed files together, with filling between and after them."""
    path = tmp_path / f"train.svm{ending}"
    path.write_bytes(b"".join(PACK[ending](b"%d 1:%d\n" % (i, i + 1)) + between for i in range(3)))
    X, y = load_svmlight(path)
    assert (y.tolist(), X.toarray().tolist()) == ([0, 1, 2], [[1.0], [2.0], [3.0]])


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("harm", ["damaged", "cut", "not compressed"])
def test_damage_after_a_good_stream(tmp_path, ending, harm):
    good = PACK[ending](b"1 1:1\n" * 10)
    second = {"damaged": b"Z" + good[1:], "cut": good[:-10], "not compressed": b"2 1:1\n"}[harm]
    path = tmp_path / f"train.svm{ending}"
    path.write_bytes(good + second)
    with pytest.raises(SvmlightError) as caught:
        load_svmlight(path)
    assert str(caught.value).startswith(f"{path}: damaged or cut compressed file (")


def test_folder_that_is_absent(tmp_path):
    """The error names the file asked for, not the temporary one."""
    path = tmp_path / "absent" / "train.svm"
    with pytest.raises(FileNotFoundError) as caught:
        dump_svmlight([[1.0]], [1], path)
    assert caught.value.filename == str(path)


def test_system_errors_pass_through(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_svmlight(tmp_path / "absent.svm")
    with pytest.raises(IsADirectoryError):
        load_svmlight(tmp_path)


# ---------------------------------------------------------------- options

def test_n_features_pads(load):
    X, _ = load(b"1 2:1\n", n_features=5)
    assert X.toarray().tolist() == [[0, 1, 0, 0, 0]]


def test_n_features_too_small(load):
    with pytest.raises(SvmlightError, match="a.svm, line 2: index 9 is larger than n_features=5$"):
        load(b"1 5:1\n1 2:3 9:1\n", n_features=5)
    with pytest.raises(SvmlightError, match="line 1: index 6 is larger than n_features=5$"):
        load(b"1 6:0\n", n_features=5)


def test_ignore_extra_drops_and_pads(load):
    X, y = load(b"1 5:1 6:2\n2 9:1\n3 1:4\n", n_features=5, ignore_extra=True)
    assert X.toarray().tolist() == [[0, 0, 0, 0, 1], [0] * 5, [4, 0, 0, 0, 0]]
    assert y.tolist() == [1, 2, 3]
    X, _ = load(b"1 1:1\n", n_features=3, ignore_extra=True)
    assert X.toarray().tolist() == [[1, 0, 0]]


@pytest.mark.parametrize("text, message", [
    (b"1 9:1 8:1\n", "index 8 does not follow index 9"),
    (b"1 9:nan\n", "non-finite value"),
    (b"1 9:x\n", "is not a number"),
])
def test_ignored_entries_are_checked_too(load, text, message):
    with pytest.raises(SvmlightError, match=message):
        load(text, n_features=5, ignore_extra=True)


@pytest.mark.parametrize("n_features", [0, -1, 2**31, 2**70])
def test_n_features_out_of_range(load, n_features):
    message = f"n_features must be between 1 and 2147483647, not {n_features}"
    with pytest.raises(ValueError, match=message):
        load(b"1 1:1\n", n_features=n_features)


def test_float32(load):
    X, _ = load(b"1 1:0.1 2:16777217 3:1e-50\n2 1:-3.4e38\n", dtype=np.float32)
    assert X.dtype == np.float32 and X.shape == (2, 3)
    assert X.nnz == 3       # 1e-50 is zero in float32
    assert X.data.tolist() == [np.float32(0.1), 16777216.0, np.float32(-3.4e38)]
    with pytest.raises(SvmlightError, match="line 1: non-finite value in '1:1e39'"):
        load(b"1 1:1e39\n", dtype=np.float32)


@pytest.mark.parametrize("dtype", [np.int64, np.float16, np.complex128])
def test_other_dtypes_are_refused(load, dtype):
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        load(b"1 1:1\n", dtype=dtype)


# ---------------------------------------------------------------- numbers equal float()

HARD_NUMBERS = [
    "0.1", "1e22", "1e23", "8.5e22", "9007199254740993", "9007199254740992.5", "1e-22", "1e-23",
    "9007199254740991e22", "9007199254740993e-22", "1.7976931348623157e308", "4.9e-324", "5e-324",
    "2.4703282292062328e-324", "2.2250738585072011e-308", "2.2250738585072014e-308", "1e-308",
    "123456789012345678", "12345678901234567890", "1234567890123456789012345678901234567890",
    "0.30000000000000004", "0.333333333333333333333333333333", "6.02214076e23", "1e40", "1e41",
    "9999999999999999999e40", "1e-40", "1e-41", "18446744073709551615", "18446744073709551616",
    # halfway between two doubles, and just beside
    "9007199254740995", "9007199254740994.9999999999", "9007199254740995.0000000001",
    "1.00000000000000011102230246251565", "1.000000000000000111022302462515654042",
    "1.00000000000000011102230246251566",
    "0.500000000000000166533453693773481063544750213623046875",
    "0." + "0" * 400 + "1e401", "1" + "0" * 400 + "e-400", "1e000000000000000000005",
]


def assert_read_as_float(texts):
    parser = svmlight.Parser(1, False, False)
    assert parser.feed("".join(f"1 1:{text}\n" for text in texts).encode()) is None
    lengths, _, _, values = parser.finish()
    read = np.zeros(len(texts))
    read[np.frombuffer(lengths, np.int32) == 1] = np.frombuffer(values, np.float64)
    assert bits(read) == bits([float(text) or 0.0 for text in texts])


@pytest.mark.parametrize("sign", ["", "-", "+"])
def test_hard_numbers(sign):
    assert_read_as_float([sign + text for text in HARD_NUMBERS])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
@settings(deadline=None)
def test_repr_of_any_float(values):
    assert_read_as_float([repr(value) for value in values])
    assert_read_as_float([f"{value:.16e}" for value in values])


@given(st.lists(st.from_regex(
    r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    min_size=1))
@settings(deadline=None)
def test_any_spelling(texts):
    assert_read_as_float(texts)


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(-45, 45)), min_size=1))
@settings(deadline=None)
def test_any_mantissa_and_exponent(numbers):
    assert_read_as_float([f"{digits}e{exponent}" for digits, exponent in numbers])


def test_numbers_near_halfway():
    """17 to 20 digits beside the middle of two doubles: a word of 64 bits does not decide them."""
    rng = np.random.default_rng(0)
    texts = []
    for mantissa in rng.integers(2**52, 2**53, 2000).tolist():
        middle = 2 * mantissa + 1       # needs 54 bits: halfway at any power of two
        shift = int(rng.integers(0, 11))
        texts += [str((middle << shift) + step) for step in (-1, 0, 1)]
        digits = str(middle * 5**shift)
        texts.append(f"{digits}e-{shift}")
    assert_read_as_float(texts)


# ---------------------------------------------------------------- any bytes

FRAGMENTS = [b"1", b"2", b"0", b"9", b":", b" ", b"\t", b"\n", b"\r", b"\r\n", b"#", b".", b"e",
             b"-", b"+", b"1:1", b" 2:3", b"1 1:1\n", b"qid:", b"nan", b"\x00", b"\xff",
             b"\xef\xbb\xbf", b"9" * 30]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(b"".join) | st.binary(max_size=40),
       st.integers(1, 9), st.integers(1, 3))
@settings(deadline=None, max_examples=300)
def test_any_bytes_read_alike_in_any_blocks(tmp_path_factory, text, block, n_threads):
    path = tmp_path_factory.getbasetemp() / "any.svm"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        whole = outcome(path)
        patch.setattr(svmlight, "_BLOCK", block)
        assert outcome(path, n_threads=n_threads) == whole


def outcome(path, **options):
    """All that a file gives, in a form to compare: the arrays' bytes or the message."""
    try:
        X, y = load_svmlight(path, **options)
    except SvmlightError as error:
        return str(error)
    assert X.shape[0] == y.size >= 1
    assert np.isfinite(X.data).all() and (X.data != 0).all()
    assert X.nnz == 0 or X.indices.max() < X.shape[1]
    return (X.shape, X.data.dtype, X.data.tobytes(), X.indices.dtype, X.indices.tolist(),
            X.indptr.dtype, X.indptr.tolist(), y.dtype, y.tolist())


# ---------------------------------------------------------------- threads

ROWS = [b"%d %d:%r 9:%d # row %d\r\n" % (i % 5 - 2, i % 8 + 1, 1 / (i + 1), i % 3, i) for i in range(60)]


@pytest.mark.parametrize("changed", [
    {}, {0: b"\xef\xbb\xbf-1.5 2:1\n"}, {31: b"0.5 3:1e-50\n"}, {59: b"2.5 1:3"},
    {7: b"9007199254740993\n", 50: b"9007199254740992 12:0\n"}, {3: b"# c\n", 4: b"#\n", 59: b"\n \n\n"}])
@pytest.mark.parametrize("options", [
    {}, {"dtype": np.float32}, {"n_features": 20}, {"n_features": 20, "dtype": np.float32},
    {"n_features": 5, "ignore_extra": True}, {"n_features": 5, "ignore_extra": True, "dtype": np.float32},
    {"n_features": 5}])
@pytest.mark.parametrize("ending", ENDINGS)
def test_threads_give_the_same_bits(tmp_path, monkeypatch, changed, options, ending):
    path = tmp_path / f"a.svm{ending}"
    path.write_bytes(PACK[ending](b"".join(changed.get(i, row) for i, row in enumerate(ROWS))))
    whole = outcome(path, **options)
    assert isinstance(whole, str) == (options == {"n_features": 5})
    for block in (1, 30, 100):
        monkeypatch.setattr(svmlight, "_BLOCK", block)
        for n_threads in (0, 1, 2, 3, 7):
            assert outcome(path, n_threads=n_threads, **options) == whole


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_the_first_bad_line_is_told(tmp_path, monkeypatch, n_threads):
    monkeypatch.setattr(svmlight, "_BLOCK", 70)
    path = tmp_path / "a.svm"
    for line in range(1, 61):
        rows = [*ROWS[:line - 1], b"1 4:1 2:1\n", *ROWS[line:-1], b"last\n"]
        path.write_bytes(b"".join(rows))
        assert outcome(path, n_threads=n_threads) == (
            f"{path}, line {line}: index 2 does not follow index 4 (indices must increase)")


@pytest.mark.parametrize("n_threads", [1, 2, 7])
@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_a_bad_line_before_the_damage_is_told(tmp_path, monkeypatch, ending, n_threads):
    monkeypatch.setattr(svmlight, "_BLOCK", 70)
    path = tmp_path / f"a.svm{ending}"
    path.write_bytes(PACK[ending](b"".join([*ROWS[:2], b"1 x:1\n", *ROWS]))[:-4])    # the check sum is cut
    assert "line 3: index in 'x:1' is not a whole number" in outcome(path, n_threads=n_threads)
    path.write_bytes(PACK[ending](b"".join(ROWS))[:-4])
    assert "damaged or cut compressed file" in outcome(path, n_threads=n_threads)


def test_labels_are_joined_in_their_kind(load, monkeypatch):
    monkeypatch.setattr(svmlight, "_BLOCK", 3)
    for n_threads in (1, 2, 3):
        _, y = load(b"1\n2\n3\n4.5\n5\n6\n", n_threads=n_threads)
        assert y.dtype == np.float64 and y.tolist() == [1, 2, 3, 4.5, 5, 6]


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["_parse_part", "_first", "read_pieces"])
def test_no_thread_outlives_an_error(tmp_path, monkeypatch, error, where):
    whole, calls = getattr(svmlight, where), []

    def part_way(*args):
        if where == "read_pieces":
            return failing_pieces(whole(*args))
        calls.append(args)
        if len(calls) == 5:
            raise error
        return whole(*args)

    def failing_pieces(pieces):
        for _ in range(5):
            yield next(pieces)
        raise error

    (tmp_path / "a.svm").write_bytes(b"".join(ROWS))
    monkeypatch.setattr(svmlight, "_BLOCK", 70)
    monkeypatch.setattr(svmlight, where, part_way)
    before = threading.active_count()
    with pytest.raises(error):
        load_svmlight(tmp_path / "a.svm", n_threads=2)
    assert threading.active_count() == before


@pytest.mark.parametrize("n_threads", [-1, 1.5, True, None])
def test_n_threads_out_of_range(load, n_threads):
    with pytest.raises(ValueError, match=f"n_threads={n_threads} must be a whole number of at least 0"):
        load(b"1 1:1\n", n_threads=n_threads)


# ---------------------------------------------------------------- writing

HARD_VALUES = [1 / 3, 1e-308, -0.0, 5e-324, 0.1 + 0.2, 1.7976931348623157e308, -123456.78901234567,
               1e22, 2.0**53 + 2, 3.0]


@pytest.mark.parametrize("ending", ENDINGS)
def test_round_trip(tmp_path, ending):
    path = tmp_path / f"a.svm{ending}"
    X = np.array([HARD_VALUES, np.roll(HARD_VALUES, 3)])
    y = np.array([2**53 + 1, -2**63])
    dump_svmlight(X, y, path)
    X_read, y_read = load_svmlight(path, n_features=X.shape[1])
    assert bits(X_read.toarray().ravel()) == bits((X + 0.0).ravel())    # -0.0 is a zero
    assert y_read.dtype == np.int64 and y_read.tolist() == y.tolist()
    assert os.listdir(tmp_path) == [path.name]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
@settings(deadline=None)
def test_round_trip_of_any_float(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "trip.svm"
    dump_svmlight(np.array([values]), [1], path)
    X, _ = load_svmlight(path, n_features=len(values))
    assert bits(X.toarray()[0]) == bits(np.array(values) + 0.0)


def test_round_trip_of_many_rows(tmp_path):
    X = sp.random_array((2500, 40), density=0.1, format="csr", random_state=np.random.default_rng(1))
    y = np.arange(2500) / 7
    dump_svmlight(X, y, tmp_path / "a.svm")
    X_read, y_read = load_svmlight(tmp_path / "a.svm", n_features=40)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(X_read, name), getattr(X, name))
    assert bits(y_read) == bits(y)


def test_the_text_that_is_written(tmp_path):
    X = sp.csr_array(np.array([[1.0, 0, -2.5], [0, 0, 0], [1e22, 5e-5, 0]]))
    dump_svmlight(X, np.array([1.0, -2.0, 10.0**18]), tmp_path / "a.svm")
    assert (tmp_path / "a.svm").read_bytes() == (
        b"1 1:1 3:-2.5\n-2\n1000000000000000000 1:1e+22 2:5e-05\n")


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.int64, np.float32])
def test_other_number_types(tmp_path, dtype):
    X = np.array([[0, 1], [1, 0]], dtype=dtype)
    if X.dtype == np.uint64:
        X[0, 1] = 2**64 - 1
    if X.dtype.kind == "f":
        X[0, 1] = 0.1
    dump_svmlight(X, np.array([0, 1], dtype=dtype), tmp_path / "a.svm")
    X_read, y = load_svmlight(tmp_path / "a.svm")
    assert bits(X_read.toarray().ravel()) == bits(X.astype(np.float64).ravel())
    assert y.dtype == np.int64 and y.tolist() == [0, 1]


CONTAINERS = [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_matrix, np.asarray]


@pytest.mark.parametrize("kind", CONTAINERS)
def test_other_containers(tmp_path, kind):
    X = kind(np.array([[0, 2.0, 1.0], [3.0, 0, 0]]))
    dump_svmlight(X, [1, 2], tmp_path / "a.svm")
    assert (tmp_path / "a.svm").read_bytes() == b"1 2:2 3:1\n2 1:3\n"


def test_unsorted_and_repeated_entries_are_put_right_in_a_copy(tmp_path):
    arrays = np.array([1.0, 2.0, 4.0, 0.0]), np.array([2, 0, 2, 1]), np.array([0, 4])
    X = sp.csr_array(tuple(array.copy() for array in arrays), shape=(1, 3))
    dump_svmlight(X, [1], tmp_path / "a.svm")
    assert (tmp_path / "a.svm").read_bytes() == b"1 1:2 3:5\n"
    for name, array in zip(("data", "indices", "indptr"), arrays):
        np.testing.assert_array_equal(getattr(X, name), array)


def test_equal_data_give_equal_compressed_files(tmp_path):
    for name in ("a.svm.gz", "b.svm.gz"):
        dump_svmlight(np.eye(3), [1, 2, 3], tmp_path / name)
    assert (tmp_path / "a.svm.gz").read_bytes() == (tmp_path / "b.svm.gz").read_bytes()


@pytest.mark.parametrize("X, y, message", [
    (np.eye(2), [1], "X has 2 rows, y has 1 labels"),
    (np.eye(2), [1, np.nan], "y holds a label that is not finite: nan"),
    (np.eye(2), [1, np.inf], "y holds a label that is not finite: inf"),
    (np.eye(2), [1, 1e20], "label 1e\\+20 does not fit 64 bits"),
    (np.eye(2), np.array([1, 2**63], np.uint64), "label 9223372036854775808 does not fit"),
    (np.eye(2), ["a", "b"], "y must be a one-dimensional array of real numbers"),
    (np.eye(2), [[1], [2]], "y must be a one-dimensional array of real numbers"),
    (np.array([[np.nan]]), [1], "X holds values that are not finite"),
    (np.array([[-np.inf]]), [1], "X holds values that are not finite"),
    (np.zeros((0, 2)), [], "X must be two-dimensional with at least one row"),
    (np.array([[1j]]), [1], "X must hold real numbers"),
    (sp.csr_array((1, 2**31)), [1], "X has 2147483648 columns; indices go up to 2147483647"),
])
def test_what_cannot_be_written(tmp_path, X, y, message):
    with pytest.raises(ValueError, match=message):
        dump_svmlight(X, y, tmp_path / "a.svm")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, ending):
    path = tmp_path / f"a.svm{ending}"
    path.write_bytes(b"old")
    format_rows = svmlight._format_rows

    def interrupted(X, labels, start, stop):
        if start > 0:
            raise KeyboardInterrupt
        return format_rows(X, labels, start, stop)

    monkeypatch.setattr(svmlight, "_format_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dump_svmlight(np.ones((2000, 2)), np.ones(2000), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


def test_writing_where_no_file_can_be(tmp_path):
    with pytest.raises(FileNotFoundError):
        dump_svmlight(np.eye(2), [1, 2], tmp_path / "absent" / "a.svm")
    with pytest.raises(OSError, match="not a regular file"):
        dump_svmlight(np.eye(2), [1, 2], tmp_path)
    assert os.listdir(tmp_path) == []


def test_writing_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "real.svm").write_bytes(b"old")
    try:
        (tmp_path / "link.svm").symlink_to("real.svm")
    except OSError:
        pytest.skip("no symbolic links here")
    dump_svmlight(np.eye(1), [1], tmp_path / "link.svm")
    assert (tmp_path / "link.svm").is_symlink()
    assert (tmp_path / "real.svm").read_bytes() == b"1 1:1\n"


# ---------------------------------------------------------------- real files, memory

@pytest.mark.parametrize("name", ["dna.train.svm.bz2", "news20_bydate_tfidf.test.svm.bz2"])
def test_same_as_scikit_learn(name):
    datasets = pytest.importorskip("sklearn.datasets")
    folder = os.environ.get("FASTMC_DATA")
    if not folder:
        pytest.skip("FASTMC_DATA does not name the folder of data sets")
    X, y = load_svmlight(os.path.join(folder, name))
    X_other, y_other = datasets.load_svmlight_file(os.path.join(folder, name), zero_based=False)
    assert X.shape == X_other.shape and y.dtype == np.int64
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(X, part), getattr(X_other, part))
    np.testing.assert_array_equal(y, y_other)


# VmHWM, not getrusage: the latter starts at the peak of the process that started this one.
PEAK = """
    import sys
    from fastmc.svmlight import load_svmlight

    def peak():
        with open("/proc/self/status") as status:
            return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))

    load_svmlight(sys.argv[1])      # imports and code pages are not counted
    before = peak()
    X, y = load_svmlight(sys.argv[2], n_threads=int(sys.argv[3]))
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    print(X.shape[0], X.nnz, size, peak() - before)
"""


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("n_threads", ["1", "2"])
def test_peak_memory(tmp_path, ending, n_threads):
    if not os.path.exists("/proc/self/status"):
        pytest.skip("the peak is read from /proc, which this system does not have")
    small, large = tmp_path / "small.svm", tmp_path / f"large.svm{ending}"
    small.write_bytes(b"1 1:1\n")
    rows = "".join(
        f"{i % 7} " + " ".join(f"{50 * j + i % 50 + 1}:{(i + j + 1) / 1000}" for j in range(20))
        + "\n" for i in range(1000)
    ).encode()
    with (gzip.open(large, "wb", 1) if ending else open(large, "wb")) as stream:
        for _ in range(200):
            stream.write(rows)
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(PEAK), small, large, n_threads],
                         capture_output=True, text=True, check=True)
    n_rows, nnz, size, extra = map(int, run.stdout.split())
    assert (n_rows, nnz) == (200_000, 4_000_000)
    # At least the entries themselves, or the measurement saw nothing.
    assert 12 * nnz <= extra <= 3 * size
