/* All functions of the driver API are there, those that are not built among them. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_report.h"

#include "libcuda/unsupported.h"

typedef struct entry_point {
    const char *name;
    int since;
    CUresult (*refuse)(void); /* NULL: it is built */
} entry_point;

static const entry_point entry_points[] = {
#define ENTRY(name, symbol, since, parameters) { #name, since, NULL },
#include "libcuda/entry_points.def"
#define MISSING(name, version, since) { #name, since, refuse_##name##version },
#define MISSING_PER_THREAD(name, version, since, ending) \
    { #name, since, refuse_##name##version }, { #name, since, refuse_##name##version##ending },
#include "libcuda/unsupported.def"
#undef MISSING
#undef MISSING_PER_THREAD
};

enum { ENTRY_POINTS = sizeof entry_points / sizeof *entry_points };

static void *find(const char *name, int version)
{
    void *address = NULL;
    CUdriverProcAddressQueryResult status;
    assert_success(cuGetProcAddress_v2(name, &address, version, 0, &status));
    assert_int_equal(status == CU_GET_PROC_ADDRESS_SUCCESS, address != NULL);
    return address;
}

TEST(all_are_found_from_their_version_on)
{
    for (size_t i = 0; i < ENTRY_POINTS; i++) {
        const entry_point *e = &entry_points[i];
        if (!find(e->name, e->since) || !find(e->name, CUDA_VERSION))
            fail_msg("%s is not found", e->name);
        if (find(e->name, e->since) == find(e->name, e->since - 1) &&
            strcmp(e->name, "cuGraphInstantiate") != 0)
            fail_msg("%s of %d is that of the version before", e->name, e->since);
    }
}

TEST(a_search_is_for_one_kind_of_stream)
{
    void *address;
    assert_success(cuGetProcAddress_v2("cuInit", &address, CUDA_VERSION,
                                       CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
    assert_int_equal(cuGetProcAddress_v2("cuInit", &address, CUDA_VERSION,
                                         CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                                             CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                                         NULL),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuGetProcAddress_v2("cuInit", &address, CUDA_VERSION, 4, NULL),
                     CUDA_ERROR_INVALID_VALUE);
}

static void refuse_all(void)
{
    for (size_t i = 0; i < ENTRY_POINTS; i++)
        if (entry_points[i].refuse && entry_points[i].refuse() != CUDA_ERROR_NOT_SUPPORTED)
            fprintf(stderr, "%s is not refused\n", entry_points[i].name);
}

static size_t count(const char *text, const char *part)
{
    size_t found = 0;
    for (; (text = strstr(text, part)); text++)
        found++;
    return found;
}

TEST(what_is_not_built_is_refused)
{
    size_t missing = 0;
#define MISSING(name, version, since)                    missing++;
#define MISSING_PER_THREAD(name, version, since, ending) missing++;
#include "libcuda/unsupported.def"
    const char *text = report_of(refuse_all);
    assert_int_equal(count(text, " is not supported\n"), missing);
    assert_int_equal(count(text, "ptxgen libcuda: cuGetExportTable is not supported\n"), 1);
    assert_null(strstr(text, "is not refused"));
}

static void call_twice(void)
{
    refuse_cuGetExportTable();
    refuse_cuGetExportTable();
}

TEST(what_is_not_built_says_so_once)
{
    assert_string_equal(report_of(call_twice),
                        "ptxgen libcuda: cuGetExportTable is not supported\n");
}
