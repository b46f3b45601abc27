/* Progress of long work on several threads. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

/* A callback for each finished piece of work, called by one thread at a time. step may be NULL. */
typedef struct progress {
    void (*step)(void *context, const char *what, size_t done, size_t total);
    void *context;
} progress;

/* Work on many kernels; its threads share only the counter. */
typedef struct shown_work {
    const progress *show;
    const char *what;
    size_t total;
    atomic_size_t done;
    atomic_flag busy;
} shown_work;

/* Counts a finished piece and shows the progress. A thread that finds another one in step returns;
 * the other thread checks the counter again afterwards, so the last piece is always shown. */
static inline void progress_finished_one(shown_work *w)
{
    atomic_fetch_add(&w->done, 1);
    if (!w->show || !w->show->step)
        return;
    for (size_t shown = 0; shown != atomic_load(&w->done);) {
        if (atomic_flag_test_and_set(&w->busy))
            return;
        shown = atomic_load(&w->done);
        w->show->step(w->show->context, w->what, shown, w->total);
        atomic_flag_clear(&w->busy);
    }
}
