#include "libcuda/event.h"

#include "base/os.h"

void event_stamp(CUevent e)
{
    event_state *s = (event_state *)(void *)e;
    s->recorded = true;
    s->captured = false;
    s->nanoseconds = os_nanoseconds();
}
