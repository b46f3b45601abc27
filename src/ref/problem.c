#include "ref/reference.h"

#include <math.h>
#include <string.h>

#include "ref/quant.h"

typedef void decoder(format f, const void *blocks, uint64_t values, float *decoded);

static void read(const void *blocks, format f, uint64_t period, uint64_t first, uint64_t count,
                 float *values, decoder *decode)
{
    while (count) {
        uint64_t at = period ? first % period : first;
        uint64_t run = period && count > period - at ? period - at : count;
        decode(f, (const char *)blocks + format_bytes(f, at), run, values);
        first += run;
        values += run;
        count -= run;
    }
}

void problem_read(const problem *p, unsigned input, uint64_t first, uint64_t count, float *values)
{
    read(p->inputs[input], p->input_formats[input], p->periods[input], first, count, values,
         ref_decode);
}

void problem_read_rounded(const problem *p, unsigned input, uint64_t first, uint64_t count,
                          float *values)
{
    read(p->inputs[input], p->input_formats[input], p->periods[input], first, count, values,
         ref_decode_rounded);
}

double problem_read_one(const problem *p, unsigned input, uint64_t element)
{
    float value;
    problem_read(p, input, element, 1, &value);
    return (double)value;
}

void ref_read(const problem *p, unsigned input, uint64_t first, uint64_t count, ref_value *values)
{
    for (uint64_t i = 0; i < count; i++) {
        double x = problem_read_one(p, input, first + i);
        values[i] = (ref_value){ x, fabs(x) };
    }
}

void ref_by_rows(const problem *p, unsigned output, uint64_t width, uint64_t first, uint64_t count,
                 ref_value *values,
                 void (*row_of)(const problem *p, unsigned output, uint64_t number, ref_value *row))
{
    ref_value row[REF_MOST_OF_ROW];
    for (uint64_t done = 0, run; done < count; done += run) {
        uint64_t at = (first + done) % width;
        run = width - at < count - done ? width - at : count - done;
        row_of(p, output, (first + done) / width, row);
        memcpy(values + done, row + at, run * sizeof *row);
    }
}
