#include "check/progress.h"

void progress_finished_one(shown_work *w)
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
