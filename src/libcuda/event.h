/* What an event is besides a place in a capture: the time at which it was recorded. */
#ifndef PTXGEN_LIBCUDA_EVENT_H
#define PTXGEN_LIBCUDA_EVENT_H

#include "libcuda/driver.h"

/* The first member of what a CUevent points to. */
typedef struct event_state {
    handle handle;
    unsigned flags;
    bool recorded, captured; /* captured: last, in a capture, where it stands for no time */
    uint64_t nanoseconds;    /* by the host's clock */
} event_state;

/* Records it now. */
void event_stamp(CUevent e);

#endif
