#include "libcuda/jit_log.h"

#include <stdio.h>

#include "libcuda/driver.h"

jit_log jit_log_of(unsigned count, const CUjit_option *options, void **values)
{
    jit_log log = { 0 };
    for (unsigned i = 0; i < count; i++)
        switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
            log.text[JIT_INFO_LOG] = values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER:
            log.text[JIT_ERROR_LOG] = values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            log.size[JIT_INFO_LOG] = (unsigned)(uintptr_t)values[i];
            log.filled[JIT_INFO_LOG] = &values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            log.size[JIT_ERROR_LOG] = (unsigned)(uintptr_t)values[i];
            log.filled[JIT_ERROR_LOG] = &values[i];
            break;
        default:
            break;
        }
    return log;
}

static void write(const jit_log *log, int which, const char *message)
{
    size_t used = 0;
    if (log->text[which] && log->size[which]) {
        int length = snprintf(log->text[which], log->size[which], "%s", message);
        used = length <= 0                         ? 0
               : (size_t)length < log->size[which] ? (size_t)length + 1
                                                   : log->size[which];
    } else if (*message) {
        say("%s", message);
    }
    if (log->filled[which])
        *log->filled[which] = (void *)(uintptr_t)used;
}

void jit_log_write(const jit_log *log, const char *info, const char *error)
{
    write(log, JIT_INFO_LOG, log->text[JIT_INFO_LOG] ? info : "");
    write(log, JIT_ERROR_LOG, error);
}
