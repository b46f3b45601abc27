/* One page about a kernel set, for people: a table, charts, every kernel's PTX. */
#ifndef PTXGEN_EMIT_REPORT_H
#define PTXGEN_EMIT_REPORT_H

#include "emit/describe.h"

/* An HTML page that needs no other file and no network: templates/report/page.html with its script,
 * its styles, a chart library and the facts in it. Registers and occupancy are in it where ptxas
 * was run, errors where the kernels were verified. */
void emit_report(strbuf *out, const described_set *d);

#endif
