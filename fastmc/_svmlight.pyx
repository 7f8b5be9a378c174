"""Parser of the LIBSVM text format. `fastmc.svmlight` opens the files and feeds it.

A line is `label index:value index:value ... # comment`. The parser takes whole
lines, so every scan below stops at a newline at the latest and needs no other bound.
"""
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.math cimport isfinite, ldexp
from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint64_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    double PyOS_string_to_double(const char* s, char** end, PyObject* overflow) except? -1.0

cdef enum Fault:
    NO_FAULT
    BLANK_LINE
    CARRIAGE_RETURN
    BAD_LABEL
    INEXACT_LABEL
    MIXED_LABELS
    BAD_INDEX
    LARGE_INDEX
    UNORDERED_INDEX
    EXTRA_INDEX
    BAD_VALUE
    NON_FINITE

# 10**0 ... 10**22 are doubles without rounding.
cdef double[23] TEN
# 10**q for q = -40 ... 40 is POWER[q + 40] * 2**POWER_EXPONENT[q + 40], cut to 64 bits.
cdef uint64_t[81] POWER
cdef int[81] POWER_EXPONENT

cdef uint64_t EIGHTEEN_DIGITS = 10 ** 18
cdef uint64_t EXACT_DOUBLE = 2 ** 53
# No mantissa that fits a file makes up for an exponent with more digits.
cdef int64_t LARGE_EXPONENT = 10 ** 15


def _fill_tables():
    for q in range(23):
        TEN[q] = float(10 ** q)
    for q in range(-40, 41):
        if q < 0:
            shift = (10 ** -q).bit_length() + 63
            POWER[q + 40] = (1 << shift) // 10 ** -q
            POWER_EXPONENT[q + 40] = -shift
        else:
            shift = (10 ** q).bit_length() - 64
            POWER[q + 40] = 10 ** q >> shift if shift > 0 else 10 ** q << -shift
            POWER_EXPONENT[q + 40] = shift


_fill_tables()


# ---------------------------------------------------------------- numbers

cdef struct Decimal:
    uint64_t digits     # the first 19 significant digits
    int64_t exponent    # the number is digits * 10**exponent
    bint negative
    bint cut            # more digits than 19, not all of them zero


cdef inline bint is_digit(char c) noexcept nogil:
    return b"0" <= c <= b"9"


cdef inline uint64_t digit(char c) noexcept nogil:
    return <uint64_t> (c - 48)


cdef inline bint ends_token(char c) noexcept nogil:
    return c == b" " or c == b"\n" or c == b"\t" or c == b"\r" or c == b"#"


cdef const char* scan_exponent(const char* p, int64_t* exponent) noexcept nogil:
    """Read what follows the letter e; NULL when there is no digit."""
    cdef bint negative = p[0] == b"-"
    cdef int64_t value = 0
    if p[0] == b"-" or p[0] == b"+":
        p += 1
    if not is_digit(p[0]):
        return NULL
    while is_digit(p[0]):
        if value < LARGE_EXPONENT:
            value = 10 * value + <int64_t> digit(p[0])
        p += 1
    exponent[0] += -value if negative else value
    return p


cdef inline const char* scan_decimal(const char* p, Decimal* out) noexcept nogil:
    """Read a decimal number and return the end of its token; NULL when it is none."""
    cdef uint64_t digits = 0
    cdef int64_t exponent = 0
    cdef bint cut = False
    cdef const char* start
    cdef const char* point
    out.negative = p[0] == b"-"
    if p[0] == b"-" or p[0] == b"+":
        p += 1
    start = p
    while is_digit(p[0]):
        if digits < EIGHTEEN_DIGITS:
            digits = 10 * digits + digit(p[0])
        else:
            exponent += 1
            cut = cut or p[0] != b"0"
        p += 1
    if p[0] == b".":
        p += 1
        point = p
        while is_digit(p[0]):
            if digits < EIGHTEEN_DIGITS:
                digits = 10 * digits + digit(p[0])
                exponent -= 1
            else:
                cut = cut or p[0] != b"0"
            p += 1
        if p == point and point - 1 == start:   # a point alone
            return NULL
    elif p == start:
        return NULL
    if p[0] == b"e" or p[0] == b"E":
        p = scan_exponent(p + 1, &exponent)
        if p == NULL:
            return NULL
    out.digits = digits
    out.exponent = exponent
    out.cut = cut
    return p if ends_token(p[0]) else NULL


cdef uint64_t high_product(uint64_t a, uint64_t b) noexcept nogil:
    """The upper 64 bits of the 128-bit product."""
    cdef uint64_t mask = 0xFFFFFFFF
    cdef uint64_t low = (a & mask) * (b & mask)
    cdef uint64_t middle = (a >> 32) * (b & mask) + (low >> 32)
    cdef uint64_t other = (a & mask) * (b >> 32) + (middle & mask)
    return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32)


cdef double rounded_product(uint64_t digits, int q) noexcept nogil:
    """digits * 10**q rounded to nearest, or -1.0 when 64 bits do not decide it.

    With digits moved up to a full word W and 10**q = (T + t) 2**s, 0 <= t < 1, the
    upper word of W T is less than 2 below that of W (T + t). So rounding to 53 bits
    is decided unless the bits to be dropped are within 2 of one half.
    """
    cdef int exponent = POWER_EXPONENT[q + 40] + 64
    cdef uint64_t high, dropped, half
    cdef int n_dropped
    while not digits >> 63:
        digits <<= 1
        exponent -= 1
    high = high_product(digits, POWER[q + 40])
    n_dropped = 11 if high >> 63 else 10
    half = <uint64_t> 1 << (n_dropped - 1)
    dropped = high & (2 * half - 1)
    if dropped == half or dropped == half - 1:
        return -1.0
    high >>= n_dropped
    return ldexp(<double> (high + (dropped > half)), exponent + n_dropped)


cdef double python_double(const char* token) noexcept with gil:
    """What float() gives: right for every length and exponent, but slower."""
    cdef char* end
    return PyOS_string_to_double(token, &end, NULL)


cdef inline double to_double(const Decimal* number, const char* token) noexcept nogil:
    """The double nearest to a scanned number, bit for bit that of Python's float()."""
    cdef double value = -1.0
    cdef int64_t q = number.exponent
    if number.digits == 0:
        value = 0.0
    elif number.cut or q < -40 or q > 40:
        return python_double(token)
    elif number.digits <= EXACT_DOUBLE and -22 <= q <= 22:
        # Both operands are exact, so the one rounding is the right one.
        value = <double> number.digits
        value = value / TEN[-q] if q < 0 else value * TEN[q]
    else:
        value = rounded_product(number.digits, <int> q)
        if value < 0.0:
            return python_double(token)
    return -value if number.negative else value


cdef Fault to_whole(const Decimal* number, int64_t* value, bint* whole) noexcept nogil:
    """Decide whether a label is a whole number, in whole numbers, so that none is rounded."""
    cdef uint64_t digits = number.digits
    cdef int64_t exponent = number.exponent
    whole[0] = True
    value[0] = 0
    if digits == 0:
        return NO_FAULT
    while exponent < 0 and digits % 10 == 0 and not number.cut:
        digits //= 10
        exponent += 1
    while exponent > 0 and digits < EIGHTEEN_DIGITS:
        digits *= 10
        exponent -= 1
    if exponent < 0:
        whole[0] = False
        return NO_FAULT
    if exponent > 0 or number.cut or digits > <uint64_t> INT64_MAX + number.negative:
        return INEXACT_LABEL
    value[0] = <int64_t> (0 - digits if number.negative else digits)
    return NO_FAULT


cdef inline bint is_double(int64_t value) noexcept nogil:
    """Whether float64 holds this whole number exactly."""
    cdef double rounded = <double> value
    return rounded < 9223372036854775808.0 and <int64_t> rounded == value


# ---------------------------------------------------------------- entries

cdef inline Fault scan_index(const char** position, int64_t previous, int64_t* out) noexcept nogil:
    """Read `index:` and check that indices increase from 1."""
    cdef const char* p = position[0]
    cdef int64_t index = 0
    while is_digit(p[0]):
        if index <= INT32_MAX:  # too large already: only look for the end
            index = 10 * index + <int64_t> digit(p[0])
        p += 1
    if p[0] != b":" or index == 0:
        return BAD_INDEX
    if index > INT32_MAX:
        return LARGE_INDEX
    if index <= previous:
        return UNORDERED_INDEX
    out[0] = index
    position[0] = p + 1
    return NO_FAULT


cdef inline Fault scan_value(const char** position, bint single, double* out) noexcept nogil:
    """Read a finite value, rounded once more to float32 when single is set."""
    cdef Decimal number
    cdef const char* end = scan_decimal(position[0], &number)
    cdef double value
    if end == NULL:
        return BAD_VALUE
    value = to_double(&number, position[0])
    if single:
        value = <float> value
    if not isfinite(value):
        return NON_FINITE
    out[0] = value
    position[0] = end
    return NO_FAULT


# ---------------------------------------------------------------- the parser

cdef int reserve(bytearray buffer, Py_ssize_t n_bytes) except -1:
    """Make a buffer at least this long; by a quarter at least, so that few moves are needed."""
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(buffer)
    if n_bytes > size:
        PyByteArray_Resize(buffer, max(n_bytes, size + size // 4))
    return 0


cdef union Label:
    int64_t whole
    double real


cdef class Parser:
    """Collects the rows of one file in four growing byte buffers.

    Parameters
    ----------
    n_features : int
        The largest index allowed.
    ignore_extra : bool
        Drop entries with larger indices instead of refusing them.
    single : bool
        Keep the values as float32.
    """
    cdef bytearray _lengths, _labels, _indices, _values
    cdef int32_t* lengths
    cdef Label* labels
    cdef int32_t* indices
    cdef char* values
    cdef int64_t n_features
    cdef bint ignore_extra, single
    cdef readonly Py_ssize_t line, n_rows, nnz
    cdef readonly int64_t width
    cdef readonly bint whole_labels
    cdef Py_ssize_t blank_line, large_line
    cdef int64_t large_label
    cdef int64_t previous       # index before the faulty one
    cdef const char* token      # start of what is being read

    def __cinit__(self, int64_t n_features, bint ignore_extra, bint single):
        self._lengths, self._labels = bytearray(), bytearray()
        self._indices, self._values = bytearray(), bytearray()
        self.n_features = n_features
        self.ignore_extra = ignore_extra
        self.single = single
        self.line = self.n_rows = self.nnz = 0
        self.width = 0
        self.whole_labels = True
        self.blank_line = self.large_line = 0

    def feed(self, bytes text not None):
        """Parse whole lines; the last byte must be a newline.

        Returns
        -------
        str or None
            What is wrong with line number `self.line`, None when all lines are good.
        """
        cdef const char* p = PyBytes_AS_STRING(text)
        cdef const char* end = p + PyBytes_GET_SIZE(text)
        cdef Fault fault
        if not text.endswith(b"\n"):
            raise ValueError("text must end with a newline")
        if self.line == 0 and text.startswith(b"\xef\xbb\xbf"):
            p += 3
        # The most that so many bytes can hold: rows `1\n`, entries ` 1:1`.
        self._make_room(PyBytes_GET_SIZE(text) // 2, PyBytes_GET_SIZE(text) // 4)
        with nogil:
            fault = self.parse_lines(p, end)
        return None if fault == NO_FAULT else self.describe(fault)

    def append(self, Parser part not None):
        """Copy the rows of the text that follows, which `part` has read without a fault.

        Returns
        -------
        bool
            False, with nothing done, where the rows before may put that text in the wrong
            (blank lines, labels that float64 does not hold): then `feed` it.
        """
        cdef Py_ssize_t value_size = 4 if self.single else 8
        if self.blank_line or part.blank_line or self.large_line or part.large_line:
            return False
        self._make_room(part.n_rows, part.nnz)
        with nogil:
            if self.whole_labels and not part.whole_labels:
                self.labels_to_float()
            elif part.whole_labels and not self.whole_labels:
                part.labels_to_float()
            memcpy(self.lengths + self.n_rows, part.lengths, 4 * part.n_rows)
            memcpy(self.labels + self.n_rows, part.labels, 8 * part.n_rows)
            memcpy(self.indices + self.nnz, part.indices, 4 * part.nnz)
            memcpy(self.values + value_size * self.nnz, part.values, value_size * part.nnz)
        self.line += part.line
        self.n_rows += part.n_rows
        self.nnz += part.nnz
        self.width = max(self.width, part.width)
        return True

    def finish(self):
        """Hand over the buffers: row lengths, labels, indices from 0, values."""
        cdef Py_ssize_t value_size = 4 if self.single else 8
        PyByteArray_Resize(self._lengths, 4 * self.n_rows)
        PyByteArray_Resize(self._labels, 8 * self.n_rows)
        PyByteArray_Resize(self._indices, 4 * self.nnz)
        PyByteArray_Resize(self._values, value_size * self.nnz)
        return self._lengths, self._labels, self._indices, self._values

    cdef int _make_room(self, Py_ssize_t more_rows, Py_ssize_t more_entries) except -1:
        cdef Py_ssize_t rows = self.n_rows + more_rows
        cdef Py_ssize_t entries = self.nnz + more_entries
        reserve(self._lengths, 4 * rows)
        reserve(self._labels, 8 * rows)
        reserve(self._indices, 4 * entries)
        reserve(self._values, (4 if self.single else 8) * entries)
        self.lengths = <int32_t*> PyByteArray_AS_STRING(self._lengths)
        self.labels = <Label*> PyByteArray_AS_STRING(self._labels)
        self.indices = <int32_t*> PyByteArray_AS_STRING(self._indices)
        self.values = PyByteArray_AS_STRING(self._values)
        return 0

    cdef Fault parse_lines(self, const char* p, const char* end) noexcept nogil:
        cdef Fault fault
        while p < end:
            self.line = self.line + 1   # += does not compile here with nonecheck on
            while p[0] == b" " or p[0] == b"\t":
                p += 1
            self.token = p
            if p[0] == b"\n" or p[0] == b"\r":
                if self.blank_line == 0:
                    self.blank_line = self.line
            elif p[0] != b"#":
                fault = self.parse_row(&p)
                if fault != NO_FAULT:
                    return fault
            fault = self.parse_end(&p)
            if fault != NO_FAULT:
                return fault
        return NO_FAULT

    cdef Fault parse_end(self, const char** position) noexcept nogil:
        """Step over an optional comment and the end of the line."""
        cdef const char* p = position[0]
        if p[0] == b"#":
            while p[0] != b"\n" and p[0] != b"\r":
                p += 1
        if p[0] == b"\r":
            if p[1] != b"\n":
                return CARRIAGE_RETURN
            p += 1
        position[0] = p + 1
        return NO_FAULT

    cdef Fault parse_row(self, const char** position) noexcept nogil:
        cdef Fault fault
        cdef Py_ssize_t before = self.nnz
        if self.blank_line:
            self.line = self.blank_line
            return BLANK_LINE
        fault = self.parse_label(position)
        if fault == NO_FAULT:
            fault = self.parse_entries(position)
        if fault != NO_FAULT:
            return fault
        self.lengths[self.n_rows] = <int32_t> (self.nnz - before)
        self.n_rows = self.n_rows + 1
        return NO_FAULT

    cdef Fault parse_label(self, const char** position) noexcept nogil:
        cdef Decimal number
        cdef int64_t value
        cdef bint whole
        cdef Fault fault
        position[0] = scan_decimal(self.token, &number)
        if position[0] == NULL:
            return BAD_LABEL
        fault = to_whole(&number, &value, &whole)
        if fault != NO_FAULT:
            return fault
        if not whole and self.whole_labels:
            self.labels_to_float()
        if whole and self.large_line == 0 and not is_double(value):
            self.large_line = self.line
            self.large_label = value
        if self.large_line and not self.whole_labels:
            self.line = self.large_line
            return MIXED_LABELS
        if self.whole_labels:
            self.labels[self.n_rows].whole = value
        elif whole:
            self.labels[self.n_rows].real = <double> value
        else:
            self.labels[self.n_rows].real = to_double(&number, self.token)
        return NO_FAULT

    cdef void labels_to_float(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n_rows):
            self.labels[i].real = <double> self.labels[i].whole
        self.whole_labels = False

    cdef Fault parse_entries(self, const char** position) noexcept nogil:
        cdef const char* p = position[0]
        cdef int64_t index = 0
        cdef double value = 0.0
        cdef Fault fault
        while True:
            while p[0] == b" " or p[0] == b"\t":
                p += 1
            if ends_token(p[0]):
                break
            self.token = p
            self.previous = index
            fault = scan_index(&p, index, &index)
            if fault == NO_FAULT:
                fault = scan_value(&p, self.single, &value)
            if fault == NO_FAULT and index > self.n_features and not self.ignore_extra:
                fault = EXTRA_INDEX
            if fault != NO_FAULT:
                return fault
            if value != 0.0 and index <= self.n_features:
                self.store(index, value)
        if index > self.width:
            self.width = index
        position[0] = p
        return NO_FAULT

    cdef inline void store(self, int64_t index, double value) noexcept nogil:
        self.indices[self.nnz] = <int32_t> (index - 1)
        if self.single:
            (<float*> self.values)[self.nnz] = <float> value
        else:
            (<double*> self.values)[self.nnz] = value
        self.nnz = self.nnz + 1

    cdef str describe(self, Fault fault):
        """One sentence on a fault, with the token it stands at."""
        cdef const char* end = self.token
        while not ends_token(end[0]) and end - self.token < 60:
            end += 1
        token = self.token[:end - self.token].decode("utf-8", "backslashreplace")
        shown = ascii(token)
        index, colon, value = token.partition(":")
        if fault == BLANK_LINE:
            return "blank line before a row (only the end of a file may hold blank lines)"
        if fault == CARRIAGE_RETURN:
            return "carriage return inside the line (lines end with LF or CR LF)"
        if fault == BAD_LABEL:
            return _bad_label(token)
        if fault == INEXACT_LABEL:
            return f"label {shown} cannot be kept exactly (whole numbers must fit 64 bits)"
        if fault == MIXED_LABELS:
            return (f"label {self.large_label} cannot be kept exactly beside labels that "
                    "are not whole numbers")
        if fault == LARGE_INDEX:
            return f"index {index} is too large (indices go up to {INT32_MAX})"
        if fault == UNORDERED_INDEX:
            return f"index {index} does not follow index {self.previous} (indices must increase)"
        if fault == EXTRA_INDEX:
            return f"index {index} is larger than n_features={self.n_features}"
        if fault == NON_FINITE or (fault == BAD_VALUE and _is_non_finite(value)):
            return f"non-finite value in {shown}"
        if fault == BAD_VALUE:
            return f"no value in {shown}" if not value else f"value in {shown} is not a number"
        return _bad_index(index, colon, shown)


def _is_non_finite(text):
    return text.lstrip("+-").lower() in ("nan", "inf", "infinity")


def _bad_label(token):
    if _is_non_finite(token):
        return f"non-finite label {token!a}"
    if ":" in token:
        return f"no label before {token!a}"
    if "," in token:
        return f"label {token!a}: several labels on a row are not supported"
    return f"label {token!a} is not a number"


def _bad_index(index, colon, shown):
    if not colon:
        return f"{shown} is not of the form index:value"
    if not index:
        return f"no index in {shown}"
    if index == "qid":
        return f"{shown}: qid is not supported"
    if index.isascii() and index.removeprefix("-").isdecimal():
        return f"index {index} in {shown}: indices must start at 1"
    return f"index in {shown} is not a whole number"
