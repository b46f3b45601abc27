/* Prints all functions of the driver API with the CUDA version that introduced them and their state
 * in this library. The list is generated from the library's own tables, for the documentation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry_point {
    const char *symbol;
    int since;
    const char *state;
} entry_point;

static entry_point entry_points[] = {
#define ENTRY(name, version, since, enters, parameters, ...) { #name #version, since, "built" },
#include "libcuda/entry_points.def"
#define MISSING(name, version, since) { #name #version, since, "not supported" },
#include "libcuda/unsupported.def"
};

enum { ENTRY_POINTS = sizeof entry_points / sizeof *entry_points };

static int compare(const void *a, const void *b)
{
    const entry_point *x = a, *y = b;
    int order = strcmp(x->symbol, y->symbol);
    return order ? order : x->since - y->since;
}

int main(void)
{
    const char *last = "";
    printf(
        "Functions of the CUDA driver API in ptxgen's emulated driver, libcuda.so.1. A function\n"
        "that is not supported returns CUDA_ERROR_NOT_SUPPORTED; its first call prints its name\n"
        "on standard error.\n\n"
        "%-52s  %-6s %s\n",
        "function", "since", "state");
    qsort(entry_points, ENTRY_POINTS, sizeof *entry_points, compare);
    for (int i = 0; i < ENTRY_POINTS; last = entry_points[i++].symbol)
        if (strcmp(entry_points[i].symbol, last) != 0)
            printf("%-52s  %2d.%-3d %s\n", entry_points[i].symbol, entry_points[i].since / 1000,
                   entry_points[i].since % 1000 / 10, entry_points[i].state);
    return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
