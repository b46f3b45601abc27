/* The formats of a decoder's matrices: weights = FORMAT for all of them, and exceptions by tensor
 * and layer, weights.TENSOR = FORMAT, FORMAT: 0..3, 7, FORMAT: 5. */
#ifndef PTXGEN_MODEL_SECTION_DECODER_FORMATS_H
#define PTXGEN_MODEL_SECTION_DECODER_FORMATS_H

#include "model/section/decoder_reader.h"

/* Reads them for the tensors that the decoder has. */
void decoder_read_formats(reader *r);

/* The key that decides the format of a tensor: "weights.attn_q" where it is there, else "weights".
 */
const char *decoder_formats_key(const reader *r, decoder_tensor t);

#endif
