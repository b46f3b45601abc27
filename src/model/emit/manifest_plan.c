#include "model/emit/emit_plan.h"

#include <inttypes.h>

#include "emit/json.h"

/* Returns a launch's arguments by parameter name: a number, or "workspace+4096". */
static json_t *arguments_json(arena *a, const plan *p, const plan_launch *l)
{
    param params[MAX_PARAMS];
    instance_params(a, &p->kernels[l->kernel], params);
    json_t *arguments = json_made(json_object());
    for (size_t i = 0; i < l->argument_count; i++) {
        const plan_argument *argument = &l->arguments[i];
        json_put(arguments, params[i].name,
                 argument->is_number ? json_integer(argument->number)
                                     : json_string(arena_format(a, "%s+%" PRIu64,
                                                                plan_memory_names[argument->memory],
                                                                argument->offset)));
    }
    return arguments;
}

static json_t *cache_parts_json(const plan_cache parts[PLAN_CACHE_PARTS])
{
    json_t *list = json_made(json_array());
    for (int part = 0; part < PLAN_CACHE_PARTS; part++)
        json_add(list, json_integer((json_int_t)parts[part].offset));
    return list;
}

static const char *const uses[] = { [DECODER_KEY_REQUIRED] = "required",
                                    [DECODER_KEY_OPTIONAL] = "optional",
                                    [DECODER_KEY_IGNORED] = "ignored" };

#include "model/emit/plan.def"

json_t *plan_json(arena *a, const plan *p)
{
    return decoder_json(a, p);
}

const char plan_convention[] =
    "bytes: sizes of the pieces of memory, all on the device but host. An argument is a piece and "
    "a byte offset in it, or a number. The program zeroes the state before the first step, then "
    "writes its inputs. tokens, positions, lengths: u32 [rows], length = position + 1; an unused "
    "row has token and position 4294967295 and length 0. sampling, for each row with a sampled "
    "token: " SAMPLING_SAID ". caches: addresses, u64 [length of caches, 2, rows], of K, then V, "
    "of each row's sequence; the caches of layer l and sequence s are at caches[l] + s * "
    "sequence_bytes of the cache. logits: f32 [logits_rows, vocab]. A step writes token, position "
    "and length of its last sampled_rows rows to the first rows";
