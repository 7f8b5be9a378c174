cdef extern from "_team.h":
    ctypedef struct team:
        long long size


cdef class Team:
    cdef team state

    cdef bint meet(self) noexcept nogil
    cdef void stop(self) noexcept nogil
    cdef void leave_core(self) noexcept nogil
