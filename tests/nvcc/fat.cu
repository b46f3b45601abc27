/* For fat binaries: stores the architecture that the running code was compiled for. */
extern "C" __global__ void architecture(unsigned *to)
{
    *to = __CUDA_ARCH__;
}
