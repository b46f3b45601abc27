/* Makes functions of the rows of manifest.def, each of which gives one kind of object as JSON. The
 * file that includes this one includes the rows. */
#include "emit/json.h"

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
