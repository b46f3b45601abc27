/* What the outputs depend on, for Make and Ninja. */
#ifndef PTXGEN_EMIT_DEPFILE_H
#define PTXGEN_EMIT_DEPFILE_H

#include "base/strbuf.h"

/* The programs that read a depfile: Ninja can read a few names that Make cannot. */
typedef enum depfile_reader { FOR_NINJA, FOR_MAKE_AND_NINJA } depfile_reader;

/* Returns the first character of a name that cannot be written for the reader, '\0' if there is
 * none.
 */
char depfile_obstacle(const char *name, depfile_reader reader);

/* A Makefile rule: the outputs depend on the inputs. Each input but the first, the spec itself, has
 * a rule that does nothing, so that Make goes on when an included file is no longer there. Names
 * are escaped for Make and Ninja. */
void emit_depfile(strbuf *out, const char *const *outputs, size_t output_count,
                  const char *const *inputs, size_t input_count);

#endif
