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
    "a byte offset in it, or a number. The program chooses the number of pages: size and offsets "
    "in pages are multiplied by it. It zeroes the state before the first step, then writes its "
    "inputs. tokens, positions, lengths, sequences: u32 [rows], length = position + 1; an unused "
    "row has token and position 4294967295 and length 0. page_table: u32 [sequences, "
    "sequence_pages], the page of positions i * page to (i + 1) * page - 1 of a sequence. "
    "sampling, for each row with a sampled token: " SAMPLING_SAID ". A cache has the bytes of "
    "sequence s at offset + s * bytes, those of page p at pages * offset + p * bytes. logits: f32 "
    "[logits_rows, vocab]. A step writes token, position and length of its last sampled_rows rows "
    "to the first rows. A step that chooses computes logits of the rows in chosen, u32 [rows], "
    "whose positions are chosen_positions, 4294967295 for none, and writes their tokens to "
    "chosen_tokens only";
