/* Families and their keys by name; instances: fields, names and parameters. */
#include "gen/family.h"

#include <string.h>

#include "base/strbuf.h"

const char *const operation_names[OP_COUNT] = {
    [OP_GEMV] = "gemv",
    [OP_QUANTIZE] = "quantize",
    [OP_ATTENTION] = "attention",
};

const choice dims_choices[] = {
    [DIMS_STATIC] = { "static", "" },
    [DIMS_DYNAMIC] = { "dynamic", "_dynamic" },
    { NULL, NULL },
};

const choice seq_len_choices[] = {
    [SEQ_LEN_DIRECT] = { "direct", "" },
    [SEQ_LEN_INDIRECT] = { "indirect", "_indirect" },
    { NULL, NULL },
};

const family *family_find(const family *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp((*list)->name, name) == 0)
            return *list;
    return NULL;
}

const key *family_key(const family *f, const char *name)
{
    for (const key *k = f->keys; k->name; k++)
        if (strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

int64_t *instance_field(instance *in, const key *k)
{
    return (int64_t *)(void *)((char *)in + k->field);
}

int64_t instance_value(const instance *in, const key *k)
{
    return *(const int64_t *)(const void *)((const char *)in + k->field);
}

/* A size that is left to the run has no part in the name. */
const char *instance_make_name(arena *a, const instance *in)
{
    strbuf name = strbuf_new(a);
    strbuf_put(&name, in->family->name);
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t value = instance_value(in, k);
        if (k->choices) {
            strbuf_put(&name, k->choices[value].tag);
        } else if (!k->at_run_time || value) {
            strbuf_char(&name, '_');
            strbuf_put(&name, k->tag);
            strbuf_signed(&name, value);
        }
    }
    return name.text;
}

/* "n*k" values of Q4_K are "n*k/256*144" bytes. */
static const char *bytes_formula(arena *a, const param *p)
{
    const format_info *f = &formats[p->format];
    if (f->block_values == 1 && strcmp(p->values, "1") == 0)
        return arena_format(a, "%u", f->block_bytes);
    const char *values = p->values;
    if (strpbrk(values, "+-"))
        values = arena_format(a, "(%s)", values);
    if (f->block_values == 1)
        return arena_format(a, "%s*%u", values, f->block_bytes);
    return arena_format(a, "%s/%u*%u", values, f->block_values, f->block_bytes);
}

static param sequence_length(const instance *in, const param *p)
{
    param length = *p;
    length.size = "seq_len";
    if (in->seq_len_mode == SEQ_LEN_INDIRECT) {
        length.kind = PARAM_IN;
        length.format = FORMAT_U32;
        length.values = length.values ? length.values : "1";
        length.align = sizeof(uint32_t);
    } else {
        length.kind = PARAM_U32;
    }
    return length;
}

size_t instance_params(arena *a, const instance *in, param params[MAX_PARAMS])
{
    size_t count = 0;
    for (const param *p = in->family->params; p->name; p++) {
        param *made = &params[count++];
        *made = p->kind == PARAM_SEQ_LEN ? sequence_length(in, p) : *p;
        if (made->kind != PARAM_U32)
            made->bytes = bytes_formula(a, made);
    }
    for (const key *k = in->family->keys; in->dims == DIMS_DYNAMIC && k->name; k++)
        if (k->at_run_time)
            params[count++] = (param){ .name = arena_format(a, "%s_dim", k->name),
                                       .kind = PARAM_U32,
                                       .size = k->name };
    return count;
}
