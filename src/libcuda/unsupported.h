/* A function for each entry point of unsupported.def: refuse_cuCtxCreate is the symbol
 * cuCtxCreate. They take whatever their callers give, and have names of their own in C, so that
 * cuda.h may declare what they stand for. */
#ifndef PTXGEN_LIBCUDA_UNSUPPORTED_H
#define PTXGEN_LIBCUDA_UNSUPPORTED_H

#include "libcuda/api.h"

/* The name of the symbol, with what name and version are macros for. */
#define SYMBOL_TEXT(symbol)    SYMBOL_TEXT_OF(symbol)
#define SYMBOL_TEXT_OF(symbol) #symbol

#define MISSING(name, version, since) \
    CUresult refuse_##name##version(void) __asm__(SYMBOL_TEXT(name##version));
#define MISSING_PER_THREAD(name, version, since, ending) \
    MISSING(name, version, since)                        \
    CUresult refuse_##name##version##ending(void) __asm__(SYMBOL_TEXT(name##version##ending));
#include "libcuda/unsupported.def"
#undef MISSING
#undef MISSING_PER_THREAD

#endif
