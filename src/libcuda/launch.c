/* Kernel launches. An invalid launch is refused with the driver's code and a line on standard error
 * that gives the reason. A faulty kernel stops: its report names the position, and its context
 * becomes unusable, as on a device.
 *
 *   unmapped or read-only memory                      CUDA_ERROR_ILLEGAL_ADDRESS
 *   address not a multiple of the access size         CUDA_ERROR_MISALIGNED_ADDRESS
 *   more than 2^36 instructions in a block            CUDA_ERROR_LAUNCH_TIMEOUT
 *   failed assertion                                  CUDA_ERROR_ASSERT
 *   unknown instruction                               CUDA_ERROR_ILLEGAL_INSTRUCTION
 *   deadlock, trap                                    CUDA_ERROR_LAUNCH_FAILED
 *   finding of a check that PTXGEN_CUDA_CHECKS sets
 *     to fault, e.g. a race or an uninitialized read  CUDA_ERROR_LAUNCH_FAILED */
#include "libcuda/launch.h"

#include <stdio.h>
#include <string.h>

static CUresult code_of_fault(emu_fault fault)
{
    static const CUresult codes[] = {
        [EMU_BAD_LAUNCH] = CUDA_ERROR_INVALID_VALUE,
        [EMU_OUT_OF_BOUNDS] = CUDA_ERROR_ILLEGAL_ADDRESS,
        [EMU_READ_ONLY] = CUDA_ERROR_ILLEGAL_ADDRESS,
        [EMU_MISALIGNED] = CUDA_ERROR_MISALIGNED_ADDRESS,
        [EMU_ASSERT] = CUDA_ERROR_ASSERT,
        [EMU_UNKNOWN] = CUDA_ERROR_ILLEGAL_INSTRUCTION,
        [EMU_LIMIT] = CUDA_ERROR_LAUNCH_TIMEOUT,
    };
    return codes[fault] ? codes[fault] : CUDA_ERROR_LAUNCH_FAILED;
}

CUDA_KERNEL_NODE_PARAMS launch_of_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *l)
{
    CUDA_KERNEL_NODE_PARAMS newer = { 0 };
    memcpy(&newer, l, sizeof *l); /* the new fields follow the old ones */
    return newer;
}

CUfunction launch_function(const CUDA_KERNEL_NODE_PARAMS *l)
{
    return l->func ? l->func : (CUfunction)(void *)l->kern;
}

static bool check_block(CUfunction f, const unsigned block[3])
{
    const unsigned *required = f->info.reqntid;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (required[0] && memcmp(required, block, 3 * sizeof *block) != 0)
        say("%s: block size %u x %u x %u; the kernel requires %u x %u x %u", f->name, block[0],
            block[1], block[2], required[0], required[1], required[2]);
    else if (!threads || threads > function_threads(f))
        say("%s: block size %u x %u x %u; the kernel allows 1 to %u threads", f->name, block[0],
            block[1], block[2], function_threads(f));
    else
        return true;
    return false;
}

/* Returns the buffer in a list of CU_LAUNCH_PARAM_… pairs; NULL if invalid or too small. */
static const unsigned char *parameter_buffer(void **extra, size_t needed)
{
    const unsigned char *bytes = NULL;
    size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2)
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            bytes = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *(size_t *)extra[1];
        else
            return NULL;
    return size >= needed ? bytes : NULL;
}

CUresult launch_check(const CUDA_KERNEL_NODE_PARAMS *l, bool cooperative)
{
    CUfunction f = launch_function(l);
    if (!handle_is(f, FUNCTION_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!l->gridDimX || !l->gridDimY || !l->gridDimZ) {
        say("%s: grid size %u x %u x %u has a zero; use 1 or more", f->name, l->gridDimX,
            l->gridDimY, l->gridDimZ);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!check_block(f, (unsigned[]){ l->blockDimX, l->blockDimY, l->blockDimZ }))
        return CUDA_ERROR_INVALID_VALUE;
    if (l->sharedMemBytes > f->dynamic_shared) {
        say("%s: %u bytes of dynamic shared memory exceed the limit of %zu; raise it with "
            "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
            f->name, l->sharedMemBytes, f->dynamic_shared);
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool both = l->kernelParams && l->extra;
    bool given = l->kernelParams || !f->info.param_count ||
                 (l->extra && parameter_buffer(l->extra, f->info.param_bytes));
    if (both || !given) {
        say("%s: %s", f->name,
            both ? "both kernelParams and extra are set; use one"
                 : "parameters are missing, or the buffer in extra is too small");
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!cooperative)
        return CUDA_SUCCESS;
    uint64_t blocks = (uint64_t)l->gridDimX * l->gridDimY * l->gridDimZ;
    unsigned fit = SM_COUNT * function_blocks(f, l->blockDimX * l->blockDimY * l->blockDimZ,
                                              l->sharedMemBytes);
    if (blocks <= fit)
        return CUDA_SUCCESS;
    say("%s: %llu cooperative blocks exceed the %u that can be resident; use a smaller grid",
        f->name, (unsigned long long)blocks, fit);
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

static const void *parameter(CUfunction f, const CUDA_KERNEL_NODE_PARAMS *l, unsigned index,
                             size_t *size)
{
    size_t offset;
    emu_param(f->module->module, f->name, index, &offset, size);
    return l->extra ? parameter_buffer(l->extra, f->info.param_bytes) + offset
                    : l->kernelParams[index];
}

static void say_report(const char *kind, const char *name, const emu_report *report)
{
    say("%s%s: line %u, block (%u, %u, %u), thread (%u, %u, %u): %s", kind, name, report->line,
        report->block[0], report->block[1], report->block[2], report->thread[0], report->thread[1],
        report->thread[2], report->message);
}

CUresult launch_fail(CUcontext c, CUfunction f, CUfunction other, const emu_report *report)
{
    CUresult r = code_of_fault(report->fault);
    if (report->fault == EMU_BAD_LAUNCH) {
        say("%s: %s", f->name, report->message);
        return r;
    }
    if (report->fault == EMU_ASSERT) {
        fprintf(stderr, "%s\n", report->message); /* the format of NVIDIA's driver */
        return c->failure = r;
    }
    say_report("", f->name, report);
    module_say_line(f->module, report->line);
    if (other)
        module_say_line(other->module, report->other_line);
    return c->failure = r;
}

/* Reports a finding in a kernel that continues. */
static void warn(void *context, const emu_launch_config *launch, const emu_report *report)
{
    (void)context;
    CUmodule m = NULL;
    do
        m = handle_next(MODULE_HANDLE, m);
    while (m && m->module != launch->module);
    say_report("warning: ", launch->entry, report);
    if (m)
        module_say_line(m, report->line);
}

static bool is_word(const char *word, const char *text, size_t length)
{
    return strlen(word) == length && strncmp(word, text, length) == 0;
}

/* Parses CHECK=ACTION or all=ACTION. Reports an invalid text with the possible values. */
static void read_check(emu_checks *c, const char *text, size_t length)
{
    static const char *const actions[] = {
        [EMU_STOPS] = "fault", [EMU_WARNS] = "warn", [EMU_PASSES] = "off"
    };
    enum { ACTIONS = sizeof actions / sizeof *actions };
    char names[100] = "all";
    size_t name_length = strcspn(text, "=,"), rest = length - name_length;
    int action = rest ? 0 : ACTIONS;
    bool found = false;
    while (action < ACTIONS && !is_word(actions[action], text + name_length + 1, rest - 1))
        action++;
    for (int i = 0; i < EMU_CHECK_COUNT; i++) {
        const char *name = emu_check_name((emu_check)i);
        strcat(strcat(names, ", "), name);
        if (action < ACTIONS &&
            (is_word(name, text, name_length) || is_word("all", text, name_length))) {
            c->actions[i] = (emu_action)action;
            found = true;
        }
    }
    if (!found)
        say("PTXGEN_CUDA_CHECKS: '%.*s' is not CHECK=fault, CHECK=warn or CHECK=off; CHECK may be "
            "%s",
            (int)length, text, names);
}

/* Describes a launch. Parameter values are in f->params. Reads PTXGEN_CUDA_CHECKS once. */
static emu_launch_config launch_config(CUcontext c, CUfunction f, const CUDA_KERNEL_NODE_PARAMS *l)
{
    emu_checks *checks = &driver.checks;
    const char *text = checks->warn ? NULL : setting("PTXGEN_CUDA_CHECKS");
    for (int i = 0; !checks->warn && i < EMU_CHECK_COUNT; i++)
        checks->actions[i] = EMU_WARNS;
    checks->carries = true;
    checks->warn = warn;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        read_check(checks, text, length);
        text += length;
        text += *text == ',';
    }
    for (unsigned i = 0; i < f->info.param_count; i++) {
        size_t size;
        f->params[i] = parameter(f, l, i, &size);
    }
    return (emu_launch_config){
        .checks = checks,
        .print = driver_print,
        .threads = driver_threads(),
        .module = f->module->module,
        .entry = f->name,
        .grid = { l->gridDimX, l->gridDimY, l->gridDimZ },
        .block = { l->blockDimX, l->blockDimY, l->blockDimZ },
        .dynamic_shared = l->sharedMemBytes,
        .stack_size = c->limits[CU_LIMIT_STACK_SIZE],
        .params = f->params,
        .param_count = f->info.param_count,
    };
}

CUresult launch_run(CUcontext c, const CUDA_KERNEL_NODE_PARAMS *l)
{
    CUfunction f = launch_function(l);
    emu_report report;
    emu_launch_config config = launch_config(c, f, l);
    if (emu_launch(driver.memory, &config, NULL, &report))
        return CUDA_SUCCESS;
    return launch_fail(c, f, NULL, &report);
}

CUresult launch_add(CUcontext c, emu_stream *to, const CUDA_KERNEL_NODE_PARAMS *l,
                    bool programmatic, bool cooperative)
{
    CUfunction f = launch_function(l);
    emu_report report;
    emu_launch_config config = launch_config(c, f, l);
    config.grid_workspace = cooperative ? driver_workspace() : 0;
    if (emu_stream_launch(to, &config, programmatic, NULL, &report))
        return CUDA_SUCCESS;
    say("%s: %s", f->name, report.message);
    return code_of_fault(report.fault);
}

bool launch_keep(arena *a, const CUDA_KERNEL_NODE_PARAMS *l, CUDA_KERNEL_NODE_PARAMS *kept)
{
    CUfunction f = launch_function(l);
    void **values = arena_try_alloc(a, (f->info.param_count + 1) * sizeof *values);
    unsigned char *bytes = arena_try_alloc(a, f->info.param_bytes + 1);
    if (!values || !bytes)
        return false;
    for (unsigned i = 0; i < f->info.param_count; i++) {
        size_t offset, size;
        emu_param(f->module->module, f->name, i, &offset, &size);
        values[i] = bytes + offset;
    }
    kept->kernelParams = values;
    launch_replace(kept, l);
    return true;
}

void launch_replace(CUDA_KERNEL_NODE_PARAMS *kept, const CUDA_KERNEL_NODE_PARAMS *l)
{
    void **values = kept->kernelParams;
    CUfunction f = launch_function(l);
    for (unsigned i = 0; i < f->info.param_count; i++) {
        size_t size;
        const void *value = parameter(f, l, i, &size);
        memcpy(values[i], value, size);
    }
    *kept = *l;
    kept->func = f;
    kept->kern = NULL;
    kept->kernelParams = values;
    kept->extra = NULL;
}
