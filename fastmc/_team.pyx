"""Threads that work together."""

cdef extern from "_team.h":
    void team_spread(team*) noexcept nogil
    void team_stop(team*) noexcept nogil
    int team_meet(team*) noexcept nogil


cdef class Team:
    """`size` threads, which may wait for each other."""

    def __init__(self, size):
        self.state.size = size

    def spread(self):
        """Each thread calls this first: it leaves a core that another one of the team is on, if it can."""
        self.leave_core()

    def halt(self):
        """Nobody waits for anybody from here on."""
        self.stop()

    cdef bint meet(self) noexcept nogil:
        """Wait until all have come here; true if the team was halted."""
        return team_meet(&self.state)

    cdef void stop(self) noexcept nogil:
        team_stop(&self.state)

    cdef void leave_core(self) noexcept nogil:
        team_spread(&self.state)
