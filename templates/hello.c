/* hello.c: multiplies a matrix by a vector with a generated kernel, and compares the result with C.
 * It needs the generated header, and at run time libcuda.so.1, of a GPU or emulated:
 *
 *     ptxgen --init
 *     ptxgen --spec kernels.ini --out .
 *     cc -o hello hello.c -ldl -lm
 *     ptxgen run ./hello
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

#define LLAMA_WITH_CUDA
#define LLAMA_KERNELS_IMPLEMENTATION
#include "llama_kernels.h"

enum { K = 4096, N = 256 };
static float w[N][K], x[K], y[N];
static llama_cuda cuda;

static int failed(const char *call, ptxgen_result result)
{
    if (result != PTXGEN_CUDA_SUCCESS)
        fprintf(stderr, "%s: CUDA error %d\n", call, (int)result);
    return result != PTXGEN_CUDA_SUCCESS;
}

/* Makes device 0 current and stores its name. The header needs a current context. */
static int open_device(void *libcuda, char *name, int size)
{
    ptxgen_result (*init)(unsigned flags);
    ptxgen_result (*get_device)(ptxgen_device * device, int ordinal);
    ptxgen_result (*get_name)(char *name, int size, ptxgen_device device);
    ptxgen_result (*retain)(void **context, ptxgen_device device);
    ptxgen_result (*set_current)(void *context);
    *(void **)&init = dlsym(libcuda, "cuInit");
    *(void **)&get_device = dlsym(libcuda, "cuDeviceGet");
    *(void **)&get_name = dlsym(libcuda, "cuDeviceGetName");
    *(void **)&retain = dlsym(libcuda, "cuDevicePrimaryCtxRetain");
    *(void **)&set_current = dlsym(libcuda, "cuCtxSetCurrent");

    ptxgen_device device;
    void *context;
    return !failed("cuInit", init(0)) && !failed("cuDeviceGet", get_device(&device, 0)) &&
           !failed("cuDeviceGetName", get_name(name, size, device)) &&
           !failed("cuDevicePrimaryCtxRetain", retain(&context, device)) &&
           !failed("cuCtxSetCurrent", set_current(context));
}

static int multiply(const ptxgen_kernel *kernel)
{
    const ptxgen_driver *driver = &cuda.driver;
    ptxgen_deviceptr device_w, device_x, device_y;
    ptxgen_load_error error;
    if (failed("load", llama_load(&cuda, kernel, &error))) {
        fputs(error.log, stderr);
        return 0;
    }
    return !failed("allocate w", driver->mem_alloc(&device_w, sizeof w)) &&
           !failed("allocate x", driver->mem_alloc(&device_x, sizeof x)) &&
           !failed("allocate y", driver->mem_alloc(&device_y, sizeof y)) &&
           !failed("copy w", driver->copy_to_device(device_w, w, sizeof w, NULL)) &&
           !failed("copy x", driver->copy_to_device(device_x, x, sizeof x, NULL)) &&
           !failed("launch",
                   llama_f32_gemv_k4096_n256_launch(&cuda, NULL, device_y, device_w, device_x)) &&
           !failed("copy y", driver->copy_to_host(y, device_y, sizeof y, NULL)) &&
           !failed("wait", driver->stream_synchronize(NULL));
}

static double worst_error(void)
{
    double worst = 0;
    for (int n = 0; n < N; n++) {
        double sum = 0;
        for (int k = 0; k < K; k++)
            sum += (double)w[n][k] * x[k];
        worst = fmax(worst, fabs(y[n] - sum));
    }
    return worst;
}

int main(void)
{
    for (int k = 0; k < K; k++) {
        x[k] = (float)(k % 17 - 8) / 7;
        for (int n = 0; n < N; n++)
            w[n][k] = (float)((k + 3 * n) % 29 - 14) / 11;
    }

    char name[64];
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!libcuda) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (!open_device(libcuda, name, sizeof name) ||
        failed("llama_cuda_init", llama_cuda_init(&cuda, dlsym, libcuda)))
        return 1;

    ptxgen_query query = {
        .op = PTXGEN_GEMV, .weights = PTXGEN_F32, .k = K, .n = N, .sm = cuda.driver.sm
    };
    const ptxgen_kernel *kernel = llama_find(&query);
    if (!kernel || !multiply(kernel))
        return 1;
    printf("%s: %s, %d rows, worst error %.0e\n", name, kernel->name, N, worst_error());
    return worst_error() > 1e-3;
}
