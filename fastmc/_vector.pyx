"""Vector loops, compiled for several instruction sets; the processor's best is in use.

Every set gives the same bits: `use` is there for tests and benchmarks.
"""

cdef extern from *:
    """
    #define VECTOR_TABLES
    #include "_vector.h"
    """
    const vector_table vector_tables[]
    int vector_supported()

cdef const vector_table* current = &vector_tables[vector_supported() - 1]


cdef const vector_table* table() noexcept nogil:
    return current


def supported():
    """Names of the instruction sets that this processor and this build have, narrowest first."""
    return [vector_tables[at].name.decode() for at in range(vector_supported())]


def in_use():
    return current.name.decode()


def use(name):
    """Take the loops of one instruction set from here on. Not while another thread computes."""
    global current
    names = supported()
    if name not in names:
        raise ValueError(f"{name!r} is not one of {names}")
    current = &vector_tables[names.index(name)]
