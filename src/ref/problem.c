#include "ref/quant.h"
#include "ref/reference.h"

static void read(const void *blocks, format f, uint64_t period, uint64_t first, uint64_t count,
                 float *values)
{
    while (count) {
        uint64_t at = period ? first % period : first;
        uint64_t run = period && count > period - at ? period - at : count;
        ref_decode(f, (const char *)blocks + format_bytes(f, at), run, values);
        first += run;
        values += run;
        count -= run;
    }
}

void problem_read(const problem *p, unsigned input, uint64_t first, uint64_t count, float *values)
{
    read(p->inputs[input], p->input_formats[input], p->periods[input], first, count, values);
}

double problem_read_one(const problem *p, unsigned input, uint64_t element)
{
    float value;
    problem_read(p, input, element, 1, &value);
    return (double)value;
}

void problem_read_sequence(const problem *p, unsigned input, uint64_t sequence, uint64_t first,
                           uint64_t count, float *values)
{
    const void *blocks = p->sequences[input] ? p->sequences[input][sequence] : p->inputs[input];
    read(blocks, p->input_formats[input], p->periods[input], first, count, values);
}
