/* jansson with one answer to exhausted memory, which is ptxgen's: the process ends. */
#ifndef PTXGEN_EMIT_JSON_H
#define PTXGEN_EMIT_JSON_H

#include <jansson.h>
#include <stdint.h>

/* What a constructor of jansson gave. */
json_t *json_made(json_t *value);

/* An object's or array's next value, which it takes over. */
void json_put(json_t *object, const char *name, json_t *value);
void json_put_string(json_t *object, const char *name, const char *text);
void json_put_number(json_t *object, const char *name, int64_t number);
void json_add(json_t *array, json_t *value);

#endif
