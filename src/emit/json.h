/* Wrappers of jansson that end the process if memory is exhausted. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/arena.h"

/* Returns a value from a jansson constructor; ends the process if it is NULL. */
json_t *json_made(json_t *value);

/* Returns the text of a value and releases the value. flags are json_dumps flags. */
char *json_text(arena *a, json_t *value, size_t flags);

/* Add a value to an object or array, which takes ownership. */
void json_put(json_t *object, const char *name, json_t *value);
void json_put_string(json_t *object, const char *name, const char *text);
void json_put_number(json_t *object, const char *name, int64_t number);
void json_add(json_t *array, json_t *value);

/* Functions from the rows of manifest.def and plan.def, each returning one kind of object. */
#define ALWAYS true
#define OBJECT(type, parameters, doc)     \
    static json_t *type##_json parameters \
    {                                     \
        json_t *object = json_made(json_object());
#define OBJECT_OR_NULL(type, parameters, there, doc) \
    static json_t *type##_json parameters            \
    {                                                \
        if (!(there))                                \
            return json_null();                      \
        json_t *object = json_made(json_object());
#define LET(declaration) declaration;
#define VALUE(name, type, when, value, doc) \
    if (when)                               \
        json_put(object, #name, value);
#define TEXT(name, type, when, value, doc) VALUE(name, type, when, json_string(value), doc)
#define NUMBER(name, type, when, value, doc) \
    VALUE(name, type, when, json_integer((json_int_t)(value)), doc)
#define PART(name, type, when, arguments, doc) VALUE(name, type, when, type##_json arguments, doc)
#define EACH(name, type, least, count, arguments, doc) \
    {                                                  \
        json_t *list = json_made(json_array());        \
        for (size_t i = 0; i < (count); i++)           \
            json_add(list, type##_json arguments);     \
        json_put(object, #name, list);                 \
    }
#define END        \
    return object; \
    }
