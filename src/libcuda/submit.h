/* Work for streams, those that are captured among them. */
#ifndef PTXGEN_LIBCUDA_SUBMIT_H
#define PTXGEN_LIBCUDA_SUBMIT_H

#include "libcuda/stream.h"

/* stream_find for a stream that will get work: the legacy stream would wait for the others, which
 * is refused while one of them is captured. */
CUresult stream_ready(CUcontext c, CUstream named, CUstream *stream);

/* Does the work or, where the stream is captured, puts it into the graph. */
CUresult stream_submit(CUcontext c, CUstream named, const work *w);

CUresult stream_record(CUcontext c, CUstream named, CUevent e);

/* With the capture that it takes part in. */
void stream_destroy(CUstream s);

#endif
