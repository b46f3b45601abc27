#include "emit/json.h"

#include <stdlib.h>

json_t *json_made(json_t *value)
{
    if (!value)
        arena_exhausted(NULL, sizeof *value);
    return value;
}

char *json_text(arena *a, json_t *value, size_t flags)
{
    char *text = json_dumps(value, flags | JSON_PRESERVE_ORDER);
    if (!text)
        arena_exhausted(a, 0);
    char *copy = arena_strdup(a, text);
    free(text);
    json_decref(value);
    return copy;
}

void json_put(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, json_made(value)) != 0)
        arena_exhausted(NULL, sizeof *value);
}

void json_add(json_t *array, json_t *value)
{
    if (json_array_append_new(array, json_made(value)) != 0)
        arena_exhausted(NULL, sizeof *value);
}

void json_put_string(json_t *object, const char *name, const char *text)
{
    json_put(object, name, json_string(text));
}

void json_put_number(json_t *object, const char *name, int64_t number)
{
    json_put(object, name, json_integer(number));
}
