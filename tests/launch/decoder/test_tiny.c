/* A model with random weights on the emulated driver. Steps of one token, steps of several tokens
 * and a captured graph must give the same bits of logits. */
#include <math.h>
#include <stdio.h>

#include "libcuda/api.h"

#define TINY_KERNELS_IMPLEMENTATION
#define TINY_WITH_CUDA
#include "tiny_kernels.h"
#include "launch/emulated.h"

enum { VOCAB = 320, PROMPT = 13, STEPS = 3, Q8_0_BYTES = 34, MOST_BYTES = VOCAB * 256 * 2 };

static tiny_cuda cuda;
static tiny_decoder model;
static uint32_t prompt[PROMPT];

static uint32_t random_number(void)
{
    static uint64_t seed = 1;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33);
}

/* Fills a tensor: gains close to 1, weights of some hundredths. */
static void fill(const ptxgen_tensor *t, unsigned char *bytes)
{
    for (size_t i = 0; t->format == PTXGEN_F32 && i < t->bytes; i += sizeof(float)) {
        float gain = 0.75f + (float)(random_number() % 512) / 1024;
        memcpy(bytes + i, &gain, sizeof gain);
    }
    for (size_t i = 0; t->format == PTXGEN_Q8_0 && i < t->bytes; i++)
        bytes[i] = i % Q8_0_BYTES == 1 ? 0x10 : (unsigned char)random_number();
}

/* Counts of ordinary and early launches, and versions that replace those of the emulated device and
 * driver. */
static struct {
    unsigned ordinary, early;
    int major, version; /* 0 = not replaced */
} calls;

static CUresult count_ordinary(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z,
                               unsigned shared, CUstream on, void **params, void **extra)
{
    calls.ordinary++;
    return cuLaunchKernel(f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, on, params,
                          extra);
}

static CUresult count_early(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    int allowed;
    calls.early++;
    assert_int_equal(config->numAttrs, 1);
    assert_int_equal(config->attrs[0].id, PTXGEN_CU_PROGRAMMATIC_STREAM_SERIALIZATION);
    memcpy(&allowed, &config->attrs[0].value, sizeof allowed);
    assert_int_equal(allowed, 1);
    return cuLaunchKernelEx(config, f, params, extra);
}

static CUresult get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult r = cuDeviceGetAttribute(value, attribute, device);
    if (calls.major && attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = calls.major;
    return r;
}

static CUresult get_version(int *version)
{
    CUresult r = cuDriverGetVersion(version);
    *version = calls.version ? calls.version : *version;
    return r;
}

static void *look_up(void *library, const char *name)
{
    static const struct {
        const char *name;
        void (*entry)(void);
    } own[] = {
        { "cuLaunchKernel", (void (*)(void))count_ordinary },
        { "cuLaunchKernelEx", (void (*)(void))count_early },
        { "cuDeviceGetAttribute", (void (*)(void))get_attribute },
        { "cuDriverGetVersion", (void (*)(void))get_version },
    };
    void *found = dlsym(library, name);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(name, own[i].name) == 0)
            memcpy(&found, &own[i].entry, sizeof found);
    return found;
}

static int make(void **state)
{
    static unsigned char bytes[MOST_BYTES];
    (void)state;
    memset(&calls, 0, sizeof calls);
    if (open_driver() || tiny_cuda_init(&cuda, look_up, dlopen(NULL, RTLD_NOW)))
        return -1;
    cuda.driver.report = keep;
    if (tiny_create(&model, &cuda, NULL))
        return -1;
    for (size_t i = 0; i < tiny_tensor_count; i++) {
        const ptxgen_tensor *t = &tiny_tensors[i];
        fill(t, bytes);
        if (t->bytes > sizeof bytes || tiny_load_tensor(&model, t, bytes, t->bytes))
            return -1;
    }
    for (size_t i = 0; i < PROMPT; i++)
        prompt[i] = random_number() % VOCAB;
    return 0;
}

static int drop(void **state)
{
    (void)state;
    return tiny_destroy(&model) || tiny_unload(&cuda) || cuCtxDestroy_v2(context);
}

/* The results of a step. The sampled token is the likeliest. */
typedef struct outcome {
    float logits[VOCAB];
    uint32_t token;
} outcome;

static outcome look(void)
{
    outcome o;
    uint32_t likeliest = 0;
    assert_success(tiny_token(&model, stream, &o.token));
    assert_success(cuMemcpyDtoH_v2(o.logits, tiny_logits(&model), sizeof o.logits));
    for (uint32_t i = 0; i < VOCAB; i++) {
        assert_true(isfinite(o.logits[i]));
        likeliest = o.logits[i] > o.logits[likeliest] ? i : likeliest;
    }
    assert_int_equal(o.token, likeliest);
    return o;
}

static void assert_same(const outcome *a, const outcome *b)
{
    assert_memory_equal(a, b, sizeof *a);
}

TEST_WITH(a_model_has_the_same_logits_one_by_one_at_once_and_as_a_graph, make, drop)
{
    outcome want[STEPS + 1], have;
    CUgraph graph;
    CUgraphExec exec;
    size_t nodes = 0;
    for (uint32_t i = 0; i < PROMPT; i++) {
        assert_success(tiny_rows(&model, stream, 1, &prompt[i], &i));
        assert_success(tiny_step(&model, stream));
    }
    want[0] = look();
    for (size_t i = 1; i <= STEPS; i++) {
        assert_success(tiny_step(&model, stream));
        want[i] = look();
    }

    assert_success(tiny_seek(&model, stream, 0));
    assert_success(tiny_prompt(&model, stream, prompt, PROMPT));
    have = look();
    assert_same(&have, &want[0]);

    assert_success(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_success(tiny_step(&model, stream));
    assert_success(cuStreamEndCapture(stream, &graph));
    assert_success(cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, tiny_plan.steps[0].launch_count);
    assert_success(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (size_t i = 1; i <= STEPS; i++) {
        assert_success(cuGraphLaunch(exec, stream));
        have = look();
        assert_same(&have, &want[i]);
    }
    assert_success(cuGraphExecDestroy(exec));
    assert_success(cuGraphDestroy(graph));
}

/* Runs a prompt and a step. Counts only the launches of the step. */
static outcome run_some(void)
{
    assert_success(tiny_seek(&model, stream, 0));
    assert_success(tiny_prompt(&model, stream, prompt, PROMPT));
    calls.ordinary = calls.early = 0;
    assert_success(tiny_step(&model, stream));
    return look();
}

TEST_WITH(all_launches_of_a_step_but_the_first_start_early, make, drop)
{
    outcome early = run_some(), late;
    size_t launches = tiny_plan.steps[0].launch_count;
    assert_int_equal(cuda.driver.overlaps, 1);
    assert_int_equal(calls.ordinary, 1);
    assert_int_equal(calls.early, launches - 1);

    model.no_overlap = 1;
    late = run_some();
    assert_int_equal(calls.ordinary, launches);
    assert_int_equal(calls.early, 0);
    assert_same(&early, &late);
}

TEST_WITH(no_launch_starts_early_if_kernels_are_for_older_targets, make, drop)
{
    assert_success(tiny_unload(&cuda));
    for (size_t i = 0; i < tiny_kernel_count; i++)
        if (tiny_kernels[i]->sm < 90)
            assert_success(
                ptxgen_load_kernel(&cuda.driver, tiny_kernels[i], &cuda.kernels[i], NULL));
    run_some();
    assert_int_equal(calls.early, 0);
    assert_int_equal(calls.ordinary, tiny_plan.steps[0].launch_count);
}

static int overlaps(int major, int version, const char *missing)
{
    tiny_cuda other;
    calls.major = major;
    calls.version = version;
    assert_success(tiny_cuda_init(&other, look_up, dlopen(NULL, RTLD_NOW)));
    if (missing) {
        other.driver.launch_kernel_ex =
            strcmp(missing, "launch") ? other.driver.launch_kernel_ex : NULL;
        other.driver.get_version = strcmp(missing, "version") ? other.driver.get_version : NULL;
        assert_success(ptxgen_driver_ask(&other.driver));
    }
    return other.driver.overlaps;
}

TEST_WITH(no_launch_starts_early_if_device_or_driver_are_older, make, drop)
{
    assert_int_equal(overlaps(0, 0, NULL), 1);
    assert_int_equal(overlaps(8, 0, NULL), 0);
    assert_int_equal(overlaps(0, 12020, NULL), 0);
    assert_int_equal(overlaps(0, 12030, NULL), 1);
    assert_int_equal(overlaps(0, 0, "launch"), 0);
    assert_int_equal(overlaps(0, 0, "version"), 0);
}

/* Copies a line of PTX without blanks and comments. Returns the start of the next line. */
static const char *next_statement(const char *text, char *line, size_t size)
{
    const size_t end = strcspn(text, "\n");
    size_t length = 0;
    for (size_t i = 0; i < end && (text[i] != '/' || text[i + 1] != '/'); i++)
        if (text[i] != ' ') {
            assert_in_range(length, 0, size - 2);
            line[length++] = text[i];
        }
    line[length] = '\0';
    return text + end + (text[end] == '\n');
}

/* A fault's line is counted in the header's text but looked up in the .ptx file. */
TEST(lines_of_a_kernel_match_its_ptx_file)
{
    static char file[1 << 20];
    for (size_t i = 0; i < tiny_kernel_count; i++) {
        const ptxgen_kernel *k = tiny_kernels[i];
        const char *have = k->ptx, *want = file;
        char path[1024], in_header[512], in_file[512];
        snprintf(path, sizeof path, "%s/tiny.%s.sm_%u.ptx", FOLDER, k->name, k->sm);
        FILE *f = fopen(path, "r");
        if (!f)
            fail_msg("cannot open %s", path);
        file[fread(file, 1, sizeof file - 1, f)] = '\0';
        fclose(f);
        while (*have && *want) {
            have = next_statement(have, in_header, sizeof in_header);
            want = next_statement(want, in_file, sizeof in_file);
            if (strcmp(k->name, k->entry) == 0 || !strstr(in_file, ".entry"))
                assert_string_equal(in_header, in_file);
        }
        assert_int_equal(*have, '\0');
        assert_int_equal(*want, '\0');
    }
}

TEST(a_dense_layer_takes_six_launches)
{
    assert_int_equal(tiny_plan.layers, 2);
    assert_int_equal(tiny_plan.step_count, 2);
    for (size_t i = 0; i < tiny_plan.step_count; i++)
        assert_in_range(tiny_plan.steps[i].launch_count, 1, 6 * 2 + 3);
}
