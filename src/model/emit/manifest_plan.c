#include "model/emit/manifest_plan.h"

#include <inttypes.h>

#include "emit/json.h"

static json_t *tensors_json(const plan *p)
{
    json_t *tensors = json_made(json_array());
    for (size_t i = 0; i < p->tensor_count; i++) {
        const plan_tensor *t = &p->tensors[i];
        json_t *item = json_made(json_object());
        json_put_string(item, "name", t->name);
        json_put_string(item, "format", formats[t->format].name);
        json_put_number(item, "gguf_type", formats[t->format].gguf_type);
        json_put_number(item, "rows", (int64_t)t->rows);
        json_put_number(item, "columns", (int64_t)t->columns);
        json_put_number(item, "bytes", (int64_t)t->bytes);
        json_put_number(item, "offset", (int64_t)t->offset);
        json_add(tensors, item);
    }
    return tensors;
}

/* By the names of the kernel's parameters: a number, or "workspace+4096". */
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

static json_t *launch_json(arena *a, const plan *p, const plan_launch *l)
{
    json_t *item = json_made(json_object());
    json_put_string(item, "kernel", p->kernels[l->kernel].name);
    json_put_number(item, "layer", l->layer);
    json_put_string(item, "said", l->said);
    json_put(item, "arguments", arguments_json(a, p, l));
    return item;
}

static json_t *buffers_json(const plan_step *step)
{
    json_t *buffers = json_made(json_array());
    for (size_t i = 0; i < step->buffer_count; i++) {
        json_t *item = json_made(json_object());
        json_put_string(item, "name", step->buffers[i].name);
        json_put_number(item, "bytes", (int64_t)step->buffers[i].bytes);
        json_put_number(item, "offset", (int64_t)step->buffers[i].offset);
        json_add(buffers, item);
    }
    return buffers;
}

static json_t *step_json(arena *a, const plan *p, const plan_step *step)
{
    json_t *launches = json_made(json_array());
    for (size_t i = 0; i < step->launch_count; i++)
        json_add(launches, launch_json(a, p, &step->launches[i]));
    json_t *item = json_made(json_object());
    json_put_number(item, "m", step->m);
    json_put_number(item, "launches_a_step", (int64_t)step->launch_count);
    json_put_number(item, "launches_a_layer", (int64_t)step->layer_launches);
    json_put_number(item, "logits_rows", step->logits_rows);
    json_put_number(item, "sampled_rows", step->sampled_rows);
    json_put(item, "buffers", buffers_json(step));
    json_put(item, "launches", launches);
    return item;
}

static json_t *state_json(const plan_state *s)
{
    json_t *state = json_made(json_object());
    json_put_number(state, "tokens", (int64_t)s->tokens);
    json_put_number(state, "positions", (int64_t)s->positions);
    json_put_number(state, "lengths", (int64_t)s->lengths);
    json_put_number(state, "sampling", (int64_t)s->sampling);
    json_put_number(state, "caches", (int64_t)s->caches);
    json_put_number(state, "logits", (int64_t)s->logits);
    return state;
}

static json_t *caches_json(const plan *p)
{
    json_t *caches = json_made(json_array());
    for (int64_t layer = 0; layer < p->decoder->layers; layer++) {
        json_t *parts = json_made(json_array());
        for (int part = 0; part < PLAN_CACHE_PARTS; part++)
            json_add(parts, json_integer((json_int_t)p->caches[layer][part].offset));
        json_add(caches, parts);
    }
    return caches;
}

/* The keys of a file of the model. */
static json_t *file_json(const decoder_file *file)
{
    static const char *const uses[] = { [DECODER_KEY_REQUIRED] = "required",
                                        [DECODER_KEY_OPTIONAL] = "optional",
                                        [DECODER_KEY_IGNORED] = "ignored" };
    json_t *keys = json_made(json_array());
    for (size_t i = 0; file && i < file->key_count; i++) {
        json_t *item = json_made(json_object());
        json_put_string(item, "name", file->keys[i].name);
        json_put_string(item, "value", file->keys[i].text);
        json_put_string(item, "use", uses[file->keys[i].use]);
        json_add(keys, item);
    }
    return keys;
}

json_t *plan_json(arena *a, const plan *p)
{
    const decoder *model = p->decoder;
    json_t *bytes = json_made(json_object());
    for (size_t i = 0; i < PLAN_MEMORIES; i++)
        json_put_number(bytes, plan_memory_names[i], (int64_t)p->bytes[i]);
    json_t *steps = json_made(json_array());
    for (size_t i = 0; i < p->step_count; i++)
        json_add(steps, step_json(a, p, &p->steps[i]));
    json_t *item = json_made(json_object());
    json_put_string(item, "architecture", model->architecture);
    json_put_number(item, "layers", model->layers);
    json_put_number(item, "hidden", model->hidden);
    json_put_number(item, "vocab", model->vocab);
    json_put_number(item, "max_seq_len", model->max_seq_len);
    json_put_number(item, "rows", p->rows);
    json_put_number(item, "sequences", model->sequences);
    json_put(item, "bytes", bytes);
    json_put(item, "caches", caches_json(p));
    json_put_number(item, "sequence_bytes", (int64_t)p->sequence_bytes);
    json_put(item, "state", state_json(&p->state));
    json_put(item, "file_keys", file_json(model->file));
    json_put(item, "tensors", tensors_json(p));
    json_put(item, "steps", steps);
    return item;
}

const char plan_convention[] =
    "bytes are of four pieces of device memory; an argument is a piece and an offset in "
    "it, or a number. The state is zero before the first step but for what the host "
    "writes. tokens, positions, lengths: u32 [rows], length = position + 1; token and "
    "position 4294967295 and length 0 where a row is none. sampling: of rows that have a "
    "token sampled " SAMPLING_SAID ". caches: addresses, u64 "
    "[layers, 2, rows], of K, then V, of each row's sequence; those of layer l and sequence "
    "s lie in the cache at caches[l] + s sequence_bytes. "
    "logits: f32 [logits_rows, vocab]. A step writes token, position and length of its "
    "last sampled_rows to the first rows";
