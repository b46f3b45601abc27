/* For fat binaries: which of the architectures that it was compiled for runs. */
extern "C" __global__ void architecture(unsigned *to)
{
    *to = __CUDA_ARCH__;
}
