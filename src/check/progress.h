/* Progress of long work that several threads do, as a person sees it. */
#ifndef PTXGEN_CHECK_PROGRESS_H
#define PTXGEN_CHECK_PROGRESS_H

#include <stdatomic.h>
#include <stddef.h>

/* Called after each finished piece of long work, from one thread at a time; may be NULL. */
typedef struct progress {
    void (*step)(void *context, const char *what, size_t done, size_t total);
    void *context;
} progress;

/* Work on many kernels at once; threads share nothing but the counter. */
typedef struct shown_work {
    const progress *show;
    const char *what;
    size_t total;
    atomic_size_t done;
    atomic_flag busy;
} shown_work;

/* Counts a finished piece and shows it. A thread that finds another one showing leaves its piece to
 * that, which looks again when it has shown: so the last piece is always shown. */
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

#endif
