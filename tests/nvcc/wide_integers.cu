extern "C" __global__ void wide_integers(long long *to, const long long *from, int n)
{
    int i = threadIdx.x;
    long long v = from[i];
    long long r = v / (i + 3) + v % (i + 5) * __mul64hi(v, v);
    r += __clzll(v) + __popcll(v) + (long long)__brevll(v) + (v >> (i & 63));
    r ^= (long long)((unsigned long long)v / (unsigned)n) + __funnelshift_l(i, n, 5);
    r += __funnelshift_rc((unsigned)v, n, i) + __byte_perm((unsigned)v, n, 0x6172) + __ffsll(v);
    to[i] = r + (long long)min((unsigned long long)v, (unsigned long long)r);
}
