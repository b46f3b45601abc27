/* What the keys of a [decoder] section must be to one another. */
#ifndef PTXGEN_MODEL_SECTION_DECODER_CHECK_H
#define PTXGEN_MODEL_SECTION_DECODER_CHECK_H

#include "model/section/decoder_reader.h"

/* Reports what does not go together in a decoder each key of which is right. */
void decoder_check(reader *r);

#endif
