extern "C" __global__ void double_math(double *to, const double *from)
{
    double v = from[threadIdx.x];
    to[threadIdx.x] = sqrt(v) * log(v) + exp(-v) / (1 + v) + rint(v * 3) + fma(v, v, -v) + cbrt(v);
}
