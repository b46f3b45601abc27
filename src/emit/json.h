/* jansson with one answer to exhausted memory, which is ptxgen's: the process ends. */
#ifndef PTXGEN_EMIT_JSON_H
#define PTXGEN_EMIT_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/arena.h"

/* What a constructor of jansson gave. */
json_t *json_made(json_t *value);

/* Returns the text of a value, which it takes over; flags are those of json_dumps. */
char *json_text(arena *a, json_t *value, size_t flags);

/* An object's or array's next value, which it takes over. */
void json_put(json_t *object, const char *name, json_t *value);
void json_put_string(json_t *object, const char *name, const char *text);
void json_put_number(json_t *object, const char *name, int64_t number);
void json_add(json_t *array, json_t *value);

/* Functions made of the rows of manifest.def and model/emit/plan.def, each of which gives one kind
 * of object. The file that includes this one includes the rows. */
#define ALWAYS true
#define OBJECT(type, parameters, said)    \
    static json_t *type##_json parameters \
    {                                     \
        json_t *object = json_made(json_object());
#define OBJECT_OR_NULL(type, parameters, there, said) \
    static json_t *type##_json parameters             \
    {                                                 \
        if (!(there))                                 \
            return json_null();                       \
        json_t *object = json_made(json_object());
#define LET(declaration) declaration;
#define VALUE(name, type, when, value, said) \
    if (when)                                \
        json_put(object, #name, value);
#define TEXT(name, type, when, value, said) VALUE(name, type, when, json_string(value), said)
#define NUMBER(name, type, when, value, said) \
    VALUE(name, type, when, json_integer((json_int_t)(value)), said)
#define PART(name, type, when, arguments, said) VALUE(name, type, when, type##_json arguments, said)
#define EACH(name, type, least, count, arguments, said) \
    {                                                   \
        json_t *list = json_made(json_array());         \
        for (size_t i = 0; i < (count); i++)            \
            json_add(list, type##_json arguments);      \
        json_put(object, #name, list);                  \
    }
#define END        \
    return object; \
    }

#endif
