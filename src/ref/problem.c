#include "ref/quant.h"
#include "ref/reference.h"

void problem_read(const problem *p, unsigned input, uint64_t first, uint64_t count, float *values)
{
    format f = p->input_formats[input];
    uint64_t period = p->periods[input];
    while (count) {
        uint64_t at = period ? first % period : first;
        uint64_t run = period && count > period - at ? period - at : count;
        ref_decode(f, (const char *)p->inputs[input] + format_bytes(f, at), run, values);
        first += run;
        values += run;
        count -= run;
    }
}
