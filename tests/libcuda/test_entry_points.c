/* All functions of the driver API must exist. Unsupported ones must be refused. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_sample.h"

typedef struct entry_point {
    const char *name;
    int since;
    void (*function)(void);
    CUresult (*refuse)(void); /* NULL if the function is supported */
} entry_point;

#define MISSING_AT(name, since, symbol) { name, since, (void (*)(void))symbol, symbol },
static const entry_point entry_points[] = {
#define ENTRY(name, version, since, enters, parameters, ...) \
    { #name, since, (void (*)(void))(name##version), NULL },
#include "libcuda/entry_points.def"
#define MISSING(name, version, since) MISSING_AT(#name, since, refuse_##name##version)
#define MISSING_PER_THREAD(name, version, since, ending) \
    MISSING(name, version, since) MISSING_AT(NULL, since, refuse_##name##version##ending)
#include "libcuda/unsupported.def"
};

enum { ENTRY_POINTS = sizeof entry_points / sizeof *entry_points };

/* Returns true if the entry point is the same function as its previous version. */
static bool is_alias_of_older(const entry_point *e)
{
    for (size_t i = 0; i < ENTRY_POINTS; i++)
        if (entry_points[i].name && strcmp(entry_points[i].name, e->name) == 0 &&
            entry_points[i].since < e->since && entry_points[i].function == e->function)
            return true;
    return false;
}

TEST(each_function_is_found_by_its_version)
{
    for (size_t i = 0; i < ENTRY_POINTS; i++) {
        const entry_point *e = &entry_points[i];
        union {
            void *address;
            void (*function)(void);
        } found;
        CUdriverProcAddressQueryResult status;
        if (!e->name)
            continue;
        assert_success(cuGetProcAddress_v2(e->name, &found.address, e->since, 0, &status));
        if (status != CU_GET_PROC_ADDRESS_SUCCESS || found.function != e->function)
            fail_msg("%s of version %d is not found, or another function is found", e->name,
                     e->since);
        assert_success(cuGetProcAddress_v2(e->name, &found.address, e->since - 1, 0, &status));
        assert_int_equal(status == CU_GET_PROC_ADDRESS_SUCCESS, found.address != NULL);
        if (found.function == e->function && !is_alias_of_older(e))
            fail_msg("%s of version %d is found with the previous version", e->name, e->since);
        assert_success(cuGetProcAddress_v2(e->name, &found.address, CUDA_VERSION, 0, &status));
        assert_non_null(found.address);
    }
}

TEST(a_search_accepts_only_one_kind_of_stream)
{
    void *address;
    assert_success(cuGetProcAddress_v2("cuInit", &address, CUDA_VERSION,
                                       CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
    assert_error(INVALID_VALUE,
                 cuGetProcAddress_v2("cuInit", &address, CUDA_VERSION,
                                     CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                                         CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                                     NULL));
    assert_error(INVALID_VALUE, cuGetProcAddress_v2("cuInit", &address, CUDA_VERSION, 4, NULL));
}

static void refuse_all(void)
{
    for (size_t i = 0; i < ENTRY_POINTS; i++)
        if (entry_points[i].refuse && entry_points[i].refuse() != CUDA_ERROR_NOT_SUPPORTED)
            fprintf(stderr, "%s is not refused\n", entry_points[i].name);
}

TEST(unsupported_functions_are_refused)
{
    size_t missing = 0;
#define MISSING(name, version, since) missing++;
#include "libcuda/unsupported.def"
    const char *text = report_of(refuse_all);
    assert_int_equal(occurrences(text, " is not supported\n"), missing);
    assert_int_equal(occurrences(text, "ptxgen libcuda: cuGetExportTable is not supported\n"), 1);
    assert_null(strstr(text, "is not refused"));
}

static void call_twice(void)
{
    refuse_cuGetExportTable();
    refuse_cuGetExportTable();
}

TEST(an_unsupported_function_is_reported_once)
{
    assert_string_equal(report_of(call_twice),
                        "ptxgen libcuda: cuGetExportTable is not supported\n");
}
