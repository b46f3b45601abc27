/* The keys that all architectures have. */
#ifndef PTXGEN_MODEL_ARCH_KEYS_H
#define PTXGEN_MODEL_ARCH_KEYS_H

#include "model/arch/architecture.h"

/* Sizes, norms and RoPE. */
void model_read_keys(model_reader *r, const model_options *options);

/* Reports keys of the architecture that nothing has read, and that say something. */
void model_check_keys(model_reader *r);

/* What a file asks for that no decoder here has: "a mixture of experts"; NULL: nothing known. */
const char *model_missing_feature(model_reader *r, const char **key);

#endif
