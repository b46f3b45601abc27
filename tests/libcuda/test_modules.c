/* Fat binaries made by nvcc (tests/nvcc), libraries, and the linker. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_sample.h"

#include <time.h>

enum { MOST_BYTES = 8192 };

typedef struct image {
    unsigned char bytes[MOST_BYTES];
    size_t size;
} image;

static image read_image(const char *file)
{
    image i = { .size = 0 };
    FILE *f = fopen(nvcc_path(file), "rb");
    assert_non_null(f);
    i.size = fread(i.bytes, 1, sizeof i.bytes - 1, f);
    fclose(f);
    return i;
}

/* Returns __CUDA_ARCH__ of a loaded kernel. */
static uint32_t architecture(CUfunction f)
{
    CUdeviceptr p = zeros();
    assert_success(launch(f, 1, 1, (void *[]){ &p }));
    return number(p, 0);
}

static uint32_t module_architecture(CUmodule m)
{
    CUfunction f;
    assert_success(cuModuleGetFunction(&f, m, "architecture"));
    return architecture(f);
}

TEST_IN_CONTEXT(a_fat_binary_gives_the_newest_ptx_of_the_device)
{
    image i = read_image("fat_none.fatbin");
    struct {
        uint32_t magic, version;
        const void *fatbin, *file;
    } wrapper = { 0x466243b1, 1, i.bytes, NULL };
    CUmodule m;
    assert_success(cuModuleLoadData(&m, i.bytes));
    assert_int_equal(module_architecture(m), 860);
    assert_success(cuModuleLoadFatBinary(&m, &wrapper));
    assert_int_equal(module_architecture(m), 860);
    assert_success(cuModuleLoad(&m, nvcc_path("fat_none.fatbin")));
    assert_int_equal(module_architecture(m), 860);
}

static void load_compressed(const char *file, bool can)
{
    image i = read_image(file);
    CUmodule m;
    CUresult r = cuModuleLoadData(&m, i.bytes);
    if (can)
        assert_success(r);
    else
        assert_error(NO_BINARY_FOR_GPU, r);
    if (can)
        assert_int_equal(module_architecture(m), 860);
}

#ifdef HAVE_ZSTD
static const bool have_zstd = true;
#else
static const bool have_zstd = false;
#endif
#ifdef HAVE_LZ4
static const bool have_lz4 = true;
#else
static const bool have_lz4 = false;
#endif

TEST_IN_CONTEXT(compressed_fat_binaries_are_loaded)
{
    load_compressed("fat_speed.fatbin", have_lz4);
    load_compressed("fat_default.fatbin", have_zstd);
}

static void load_both_compressed(void)
{
    load_compressed("fat_speed.fatbin", have_lz4);
    load_compressed("fat_default.fatbin", have_zstd);
}

TEST(a_failed_decompression_names_the_missing_library)
{
    const char *text = report_of(load_both_compressed);
    assert_true((strstr(text, "built without liblz4") == NULL) == have_lz4);
    assert_true((strstr(text, "built without libzstd") == NULL) == have_zstd);
}

static CUresult load_part(const image *i, size_t size)
{
    CUlinkState l;
    CUmodule m;
    void *linked;
    size_t linked_size;
    unsigned char *exact = malloc(size); /* exact size: a sanitizer finds reads past the end */
    memcpy(exact, i->bytes, size);
    assert_success(cuLinkCreate_v2(0, NULL, NULL, &l));
    CUresult r = cuLinkAddData_v2(l, CU_JIT_INPUT_FATBINARY, exact, size, "part", 0, NULL, NULL);
    if (!r && !(r = cuLinkComplete(l, &linked, &linked_size)))
        r = cuModuleLoadData(&m, linked);
    free(exact);
    assert_success(cuLinkDestroy(l));
    return r;
}

TEST_IN_CONTEXT(malformed_fat_binaries_are_refused)
{
    image whole = read_image(have_zstd ? "fat_default.fatbin" : "fat_none.fatbin"), i;
    assert_success(load_part(&whole, whole.size));
    for (size_t size = 4; size < whole.size; size += 1 + size / 20)
        assert_error(INVALID_IMAGE, load_part(&whole, size));
    static const struct {
        size_t at;
        unsigned char byte;
    } wrong[] = {
        { 4, 2 },          /* version */
        { 6, 3 },          /* header size */
        { 15, 1 },         /* total size */
        { 8, 200 },        /* total size that ends within an image */
        { 16 + 4, 8 },     /* size of an image's head */
        { 16 + 7, 0xff },  /* size of an image's head */
        { 16 + 8, 0xff },  /* size of an image's content */
        { 16 + 15, 0xff }, /* size of an image's content */
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        CUmodule m;
        i = whole;
        i.bytes[wrong[k].at] = wrong[k].byte;
        assert_error(INVALID_IMAGE, load_part(&i, i.size));
        if (k != 2) /* has no effect on an image in memory */
            assert_error(INVALID_IMAGE, cuModuleLoadData(&m, i.bytes));
    }
}

TEST_IN_CONTEXT(wrong_sizes_of_compressed_ptx_are_refused)
{
    enum { SECOND_PTX = 16 + 64 + 2984 + 80 + 208, COMPRESSED = 16, PLAIN = 56, CONTENT = 80 };
    image whole = read_image("fat_default.fatbin"), i;
    if (!have_zstd)
        skip();
    for (unsigned k = 0; k < 5; k++) {
        i = whole;
        if (k == 0)
            i.bytes[SECOND_PTX + COMPRESSED + 3] = 1; /* beyond the content */
        else if (k == 1)
            i.bytes[SECOND_PTX + PLAIN]++;
        else if (k == 2)
            i.bytes[SECOND_PTX + PLAIN + 7] = 0xff;
        else if (k == 3)
            i.bytes[SECOND_PTX + COMPRESSED]--;
        else
            memset(i.bytes + SECOND_PTX + CONTENT + 20, 0xaa, 100);
        assert_error(INVALID_IMAGE, load_part(&i, i.size));
    }
}

TEST_IN_CONTEXT(machine_code_without_ptx_is_refused)
{
    image i = read_image("fat_none.fatbin");
    CUmodule m;
    uint64_t first_image = 64 + 2984;
    memcpy(i.bytes + 8, &first_image, sizeof first_image);
    assert_error(NO_BINARY_FOR_GPU, cuModuleLoadData(&m, i.bytes));
}

TEST_IN_CONTEXT(a_library_belongs_to_no_context)
{
    image i = read_image("fat_none.fatbin");
    CUlibrary library, of;
    CUkernel kernel, again;
    CUfunction f;
    CUmodule m;
    CUcontext other;
    const char *name;
    size_t offset, size;
    unsigned count;
    int value;
    assert_success(cuCtxPopCurrent_v2(NULL));
    assert_success(cuLibraryLoadData(&library, i.bytes, NULL, NULL, 0, NULL, NULL, 0));
    assert_success(cuLibraryGetKernel(&kernel, library, "architecture"));
    assert_success(cuLibraryGetKernelCount(&count, library));
    assert_int_equal(count, 1);
    assert_success(cuLibraryEnumerateKernels(&again, 1, library));
    assert_ptr_equal(again, kernel);
    assert_success(cuKernelGetLibrary(&of, kernel));
    assert_ptr_equal(of, library);
    assert_success(cuKernelGetName(&name, kernel));
    assert_string_equal(name, "architecture");
    assert_success(cuKernelGetParamInfo(kernel, 0, &offset, &size));
    assert_true(offset == 0 && size == 8);
    assert_success(
        cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
    assert_int_equal(value, 1024);
    assert_success(
        cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, kernel, 0));
    assert_error(INVALID_CONTEXT, cuKernelGetFunction(&f, kernel));

    assert_success(cuCtxCreate_v4(&other, NULL, 0, 0));
    assert_success(cuKernelGetFunction(&f, kernel));
    assert_int_equal(architecture(f), 860);
    assert_int_equal(architecture((CUfunction)(void *)kernel), 860);
    assert_success(cuLibraryGetModule(&m, library));
    assert_int_equal(module_architecture(m), 860);
    assert_error(NOT_PERMITTED, cuModuleUnload(m));
    assert_success(cuCtxDestroy_v2(other));

    assert_success(cuCtxPushCurrent_v2(context));
    assert_success(cuKernelGetFunction(&f, kernel));
    assert_int_equal(architecture(f), 860);
    assert_success(cuLibraryUnload(library));
    assert_error(INVALID_HANDLE, cuLibraryUnload(library));
    assert_error(INVALID_HANDLE, cuKernelGetFunction(&f, kernel));
    assert_success(cuModuleLoadData(&m, i.bytes));
    assert_error(INVALID_HANDLE, cuLibraryUnload((CUlibrary)(void *)m));
    assert_success(cuLibraryLoadFromFile(&library, nvcc_path("fat_none.fatbin"), NULL, NULL, 0,
                                         NULL, NULL, 0));
    assert_success(cuLibraryUnload(library));
}

static const char CALLER[] =
    "// .target sm_90\n" PTX_HEAD ".extern .func (.param .b32 out) twice(.param .b32 in);\n"
    ".visible .entry k(.param .u64 p)\n{\n"
    "    .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
    "    ld.param.u64 %rd1, [p];\n    mov.u32 %r1, 21;\n"
    "    { .param .b32 in; .param .b32 out;\n"
    "      st.param.b32 [in], %r1;\n      call.uni (out), twice, (in);\n"
    "      ld.param.b32 %r2, [out]; }\n"
    "    st.global.u32 [%rd1], %r2;\n    ret;\n}\n";
static const char CALLED[] =
    ".version 7.0\n.target sm_80, debug // \n.address_size 64\n"
    ".visible .func (.param .b32 out) twice(.param .b32 in)\n{\n"
    "    .reg .b32 %r<3>;\n    ld.param.b32 %r1, [in];\n"
    "    add.u32 %r2, %r1, %r1;\n    st.param.b32 [out], %r2;\n    ret;\n}\n";

static void link_text(CUlinkState l, const char *ptx)
{
    char *text = strdup(ptx); /* need not outlive the call */
    assert_success(
        cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, text, strlen(text) + 1, "", 0, NULL, NULL));
    free(text);
}

TEST_IN_CONTEXT(linked_images_call_each_other)
{
    CUlinkState l;
    CUmodule m;
    CUfunction f;
    CUdeviceptr p = zeros();
    void *linked;
    size_t size;
    assert_success(cuLinkCreate_v2(0, NULL, NULL, &l));
    assert_error(INVALID_VALUE, cuLinkComplete(l, &linked, &size));
    link_text(l, CALLER);
    link_text(l, CALLED);
    assert_success(cuLinkComplete(l, &linked, &size));
    unsigned char *kept = malloc(size);
    memcpy(kept, linked, size);
    assert_success(cuLinkDestroy(l));
    assert_error(INVALID_HANDLE, cuLinkDestroy(l));
    assert_success(cuModuleLoadData(&m, kept));
    free(kept);
    assert_success(cuModuleGetFunction(&f, m, "k"));
    assert_success(launch(f, 1, 1, (void *[]){ &p }));
    assert_int_equal(number(p, 0), 42);
    assert_int_equal(function_attribute(f, CU_FUNC_ATTRIBUTE_PTX_VERSION), 80);
}

TEST_IN_CONTEXT(the_linker_accepts_files_and_its_own_images)
{
    CUlinkState l, second;
    CUmodule m;
    void *linked;
    size_t size;
    assert_success(cuLinkCreate_v2(0, NULL, NULL, &l));
    assert_error(FILE_NOT_FOUND,
                 cuLinkAddFile_v2(l, CU_JIT_INPUT_PTX, "/nowhere.ptx", 0, NULL, NULL));
    assert_success(
        cuLinkAddFile_v2(l, CU_JIT_INPUT_FATBINARY, nvcc_path("fat_none.fatbin"), 0, NULL, NULL));
    assert_success(cuLinkComplete(l, &linked, &size));
    assert_error(INVALID_VALUE, cuLinkAddFile_v2(l, CU_JIT_INPUT_FATBINARY,
                                                 nvcc_path("fat_none.fatbin"), 0, NULL, NULL));
    assert_success(cuLinkCreate_v2(0, NULL, NULL, &second));
    assert_success(cuLinkAddData_v2(second, CU_JIT_INPUT_CUBIN, linked, size, NULL, 0, NULL, NULL));
    assert_success(cuLinkComplete(second, &linked, &size));
    assert_success(cuModuleLoadData(&m, linked));
    assert_int_equal(module_architecture(m), 860);
    assert_error(INVALID_VALUE,
                 cuLinkAddData_v2(l, CU_JIT_INPUT_LIBRARY, linked, size, NULL, 0, NULL, NULL));
    assert_success(cuLinkCreate_v2(0, NULL, NULL, &l));
    assert_error(NOT_SUPPORTED,
                 cuLinkAddData_v2(l, CU_JIT_INPUT_LIBRARY, linked, size, NULL, 0, NULL, NULL));
    assert_error(INVALID_VALUE,
                 cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, linked, 0, NULL, 0, NULL, NULL));
}

TEST_IN_CONTEXT(link_errors_are_in_the_log)
{
    char log[200] = "";
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log }, *linked;
    CUlinkState l;
    size_t size;
    assert_success(cuLinkCreate_v2(2, options, values, &l));
    link_text(l, PTX_HEAD "nonsense\n");
    assert_error(INVALID_PTX, cuLinkComplete(l, &linked, &size));
    assert_non_null(strstr(log, "line 4"));
    assert_int_equal((uintptr_t)values[1], strlen(log) + 1);
}

/* A module with many parts of one kind. %1$d is a part's number, %2$d the next part's. */
typedef struct large_module {
    enum {
        ASK_NOTHING,
        ASK_FUNCTIONS,
        ASK_GLOBALS
    } ask; /* look up k0, k1, … or v0, v1, … by
                                                             name */
    const char *head, *part, *tail;
} large_module;

#define IN_ENTRY PTX_HEAD ".visible .entry k()\n{\n.reg .b32 %r<2>; mov.u32 %r1, 0;\n"

static const large_module large_modules[] = {
    { ASK_FUNCTIONS, PTX_HEAD, ".visible .entry k%1$d() { ret; }\n", "" },
    { ASK_NOTHING, PTX_HEAD,
      ".func f%1$d() { ret; }\n.visible .entry k%1$d() { call f%1$d; ret; }\n", "" },
    { ASK_NOTHING, PTX_HEAD, ".func f%1$d() { ret; }\n.global .u64 v%1$d = f%1$d;\n", "" },
    { ASK_GLOBALS, PTX_HEAD, ".global .u32 v%1$d = %1$d;\n", "" },
    { ASK_NOTHING, IN_ENTRY, "L%1$d: add.u32 %%r1, %%r1, 1;\n", "ret; }\n" },
    { ASK_NOTHING, IN_ENTRY, "L%1$d: bra L%2$d;\n", "L%1$d: ret; }\n" },
    { ASK_NOTHING, IN_ENTRY, "add.u32 %%r1, %%r1, %1$d;\n", "ret; }\n" },
    { ASK_NOTHING, IN_ENTRY, ".reg .b32 a%1$d; mov.u32 a%1$d, %%r1;\n", "ret; }\n" },
    { ASK_NOTHING, IN_ENTRY, "unknown.u32 %%r1, %%r1;\n", "ret; }\n" },
};

/* Returns the CPU time to load `count` parts, look up each, and unload them. */
static clock_t time_of(const large_module *l, int count)
{
    enum { MOST_BYTES_OF_PART = 80 };
    char *text = malloc((size_t)(count + 20) * MOST_BYTES_OF_PART), *end = text, name[20], log[80];
    CUjit_option option[] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
    void *value[] = { log, (void *)sizeof log };
    CUmodule m;
    assert_non_null(text);
    end = stpcpy(end, l->head);
    for (int i = 0; i < count; i++)
        end += sprintf(end, l->part, i, i + 1);
    sprintf(end, l->tail, count);
    clock_t start = clock();
    assert_success(cuModuleLoadDataEx(&m, text, 2, option, value));
    for (int i = 0; i < count; i++) {
        CUfunction f;
        CUdeviceptr p;
        sprintf(name, "%c%d", l->ask == ASK_FUNCTIONS ? 'k' : 'v', i);
        if (l->ask == ASK_FUNCTIONS)
            assert_success(cuModuleGetFunction(&f, m, name));
        if (l->ask == ASK_GLOBALS)
            assert_success(cuModuleGetGlobal_v2(&p, NULL, m, name));
    }
    assert_success(cuModuleUnload(m));
    clock_t taken = clock() - start;
    free(text);
    return taken;
}

/* Eight times as many parts must take about eight times as long. Quadratic time would be 64 times
 * as long. */
TEST_IN_CONTEXT(the_time_to_load_a_module_is_about_linear)
{
    enum { PARTS = 2000, TIMES = 8, TRIES = 3 };
    for (size_t i = 0; i < sizeof large_modules / sizeof *large_modules; i++) {
        const large_module *l = &large_modules[i];
        clock_t few = time_of(l, PARTS), many = time_of(l, TIMES * PARTS);
        for (int tries = 1; tries < TRIES && many >= 3 * TIMES * few; tries++) {
            clock_t again = time_of(l, TIMES * PARTS);
            many = again < many ? again : many;
        }
        if (many >= 3 * TIMES * few)
            fail_msg("%d times '%s' take %ld clock ticks, %d times %ld", PARTS, l->part, (long)few,
                     TIMES * PARTS, (long)many);
    }
}
