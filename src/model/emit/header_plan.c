/* Data are initialised by position, in the order of templates/header_plan.h.in. */
#include "model/emit/emit_plan.h"

#include <inttypes.h>
#include <string.h>

#include "emit/header_parts.h"
#include "model/plan/plan.h"
#include "templates/templates.h"

static void print_plan_declarations(strbuf *out, const described_set *d)
{
    const plan *p = d->set->plan;
    strbuf_format(out,
                  "/* The model's step: %s, %" PRId64 " layers, hidden size %" PRId64 ", %" PRId64
                  " positions.\n *\n",
                  p->decoder->architecture, p->decoder->layers, p->decoder->hidden,
                  p->decoder->max_seq_len);
    for (size_t i = 0; i < p->step_count; i++)
        strbuf_format(out, " * %12zu launches for m = %" PRId64 "\n", p->steps[i].launch_count,
                      p->steps[i].m);
    for (size_t i = 0; i < PLAN_MEMORIES; i++)
        if (p->bytes[i])
            strbuf_format(out, " * %12" PRIu64 " bytes of %s\n", p->bytes[i],
                          i == PLAN_PAGES  ? "each page"
                          : i == PLAN_HOST ? "host memory"
                                           : plan_memory_names[i]);
    strbuf_format(out,
                  " */\nextern const ptxgen_tensor %s_tensors[];\n"
                  "extern const size_t %s_tensor_count;\n"
                  "extern const ptxgen_decoder_plan %s_plan;\n\n",
                  d->set->prefix, d->set->prefix, d->set->prefix);
}

/* Short names of the memory pieces, which keep the long tables narrow. */
static const struct {
    char letter;
    const char *piece;
} pieces[] = {
    [PLAN_WEIGHTS] = { 'W', "IN_WEIGHTS" },     [PLAN_CACHE] = { 'C', "IN_CACHE" },
    [PLAN_PAGES] = { 'P', "IN_PAGES" },         [PLAN_STATE] = { 'S', "IN_STATE" },
    [PLAN_WORKSPACE] = { 'B', "IN_WORKSPACE" }, [PLAN_HOST] = { 'H', "IN_HOST" },
    [PLAN_MEMORIES] = { 'N', "NUMBER" },
};

/* Prints a C string literal, with ? for bytes that are not printable ASCII; NULL as NULL. */
static void put_quoted(strbuf *out, const char *text)
{
    if (!text) {
        strbuf_put(out, "NULL");
        return;
    }
    strbuf_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            strbuf_char(out, '\\');
        strbuf_char(out, *text >= ' ' && *text <= '~' ? *text : '?');
    }
    strbuf_char(out, '"');
}

/* Prints the keys of the model's file, and tensors that loaders ignore. */
static void print_file(strbuf *out, const char *prefix, const decoder_file *file)
{
    static const char *const uses[] = { [DECODER_KEY_REQUIRED] = "REQUIRED",
                                        [DECODER_KEY_OPTIONAL] = "OPTIONAL",
                                        [DECODER_KEY_IGNORED] = "IGNORED" };
    size_t at = 0;
    if (!file->key_count)
        return;
    strbuf_format(out, "static const double %s_key_values[] = {\n", prefix);
    for (size_t i = 0; i < file->key_count; i++)
        for (size_t v = 0; v < file->keys[i].count; v++)
            strbuf_format(out, "%s%.17g,%s", v ? " " : "    ", file->keys[i].values[v],
                          v + 1 < file->keys[i].count ? "" : "\n");
    strbuf_format(out, "    0,\n};\nstatic const ptxgen_file_key %s_keys[] = {\n", prefix);
    for (size_t i = 0; i < file->key_count; i++) {
        const decoder_key *k = &file->keys[i];
        strbuf_put(out, "    { ");
        put_quoted(out, k->name);
        strbuf_put(out, ", ");
        put_quoted(out, k->same ? arena_format(out->arena, "%s|%s", k->text, k->same) : k->text);
        strbuf_format(out, ", PTXGEN_KEY_%s, ", uses[k->use]);
        if (k->values)
            strbuf_format(out, "%s_key_values + %zu, %zu },\n", prefix, at, k->count);
        else
            strbuf_put(out, "NULL, 0 },\n");
        at += k->count;
    }
    strbuf_put(out, "};\n");
    if (file->ignored_tensor_count) {
        strbuf_format(out, "static const char *const %s_ignored_tensors[] = {\n", prefix);
        for (size_t i = 0; i < file->ignored_tensor_count; i++)
            strbuf_format(out, "    \"%s\",\n", file->ignored_tensors[i]);
        strbuf_put(out, "};\n");
    }
    strbuf_char(out, '\n');
}

static void put_list(strbuf *out, const char *prefix, const char *name, size_t count)
{
    strbuf_format(out, count ? "%s_%s, %zu, " : "NULL, 0, ", prefix, name, count);
}

static void print_tensors(strbuf *out, const char *prefix, const plan *p)
{
    strbuf_format(out, "const ptxgen_tensor %s_tensors[] = {\n", prefix);
    for (size_t i = 0; i < p->tensor_count; i++) {
        const plan_tensor *t = &p->tensors[i];
        const format_info *f = &formats[t->format];
        strbuf_format(out, "    { \"%s\", \"%s\", ", t->name, f->name);
        print_constant(out, f->name);
        strbuf_format(
            out, ", %d, %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", PTXGEN_%s, %" PRIu64 " },\n",
            f->gguf_type, t->rows, t->columns, t->bytes, pieces[t->memory].piece, t->offset);
    }
    strbuf_format(out,
                  "};\nconst size_t %s_tensor_count = sizeof %s_tensors / sizeof *%s_tensors;\n\n",
                  prefix, prefix, prefix);
}

/* Prints the steps and their launches. Comments number launches from 1, as error reports do. */
static void print_steps(strbuf *out, const kernel_set *set)
{
    const plan *p = set->plan;
    for (size_t i = 0; i <= PLAN_MEMORIES; i++)
        strbuf_format(out, "#define PTXGEN_%c(offset) { PTXGEN_%s, offset }\n", pieces[i].letter,
                      pieces[i].piece);
    for (const plan_step *step = p->steps; step < p->steps + p->step_count; step++) {
        strbuf_format(out, "static const ptxgen_plan_launch %s_plan_m%" PRId64 "[] = {\n",
                      set->prefix, step->m);
        for (size_t i = 0; i < step->launch_count; i++) {
            const plan_launch *l = &step->launches[i];
            strbuf_format(out, "    /* %zu */ { %zu, %" PRId64 ", \"%s\", %zu,\n      { ", i + 1,
                          kernel_place(set, p->kernels[l->kernel].name), l->layer, l->said,
                          l->argument_count);
            for (size_t j = 0; j < l->argument_count; j++) {
                const plan_argument *a = &l->arguments[j];
                strbuf_format(out, "%sPTXGEN_%c(%" PRIu64 ")", j ? ", " : "",
                              pieces[a->is_number ? PLAN_MEMORIES : a->memory].letter,
                              a->is_number ? a->number : a->offset);
            }
            strbuf_put(out, " } },\n");
        }
        strbuf_put(out, "};\n\n");
    }
    for (size_t i = 0; i <= PLAN_MEMORIES; i++)
        strbuf_format(out, "#undef PTXGEN_%c\n", pieces[i].letter);
    strbuf_format(out, "static const ptxgen_plan_step %s_plan_steps[] = {\n", set->prefix);
    for (size_t i = 0; i < p->step_count; i++)
        strbuf_format(
            out, "    { %" PRId64 ", %s_plan_m%" PRId64 ", %zu, %" PRId64 ", %" PRId64 ", %d },\n",
            p->steps[i].m, set->prefix, p->steps[i].m, p->steps[i].launch_count,
            p->steps[i].logits_rows, p->steps[i].sampled_rows, p->steps[i].chooses);
    strbuf_put(out, "};\n\n");
}

static int64_t shortest_ring(const decoder *d)
{
    int64_t least = 0;
    for (int64_t layer = 0; layer < d->layers; layer++) {
        int64_t ring = decoder_has_part(d, PART_KV, layer) ? plan_ring(d, layer) : 0;
        least = ring && (!least || ring < least) ? ring : least;
    }
    return least;
}

static void print_plan_data(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    const plan *p = set->plan;
    const decoder *model = p->decoder;
    const decoder_file *file = model->file ? model->file : &(const decoder_file){ 0 };
    const plan_state *s = &p->state;
    print_tensors(out, set->prefix, p);
    print_file(out, set->prefix, file);
    print_steps(out, set);
    strbuf_format(out, "static const ptxgen_cache %s_caches[][2] = {\n", set->prefix);
    for (int64_t slot = 0; slot < decoder_slots(model); slot++)
        for (int part = 0; part < PLAN_CACHE_PARTS; part++) {
            const plan_cache *c = &p->caches[slot][part];
            strbuf_format(out, "%s{ { PTXGEN_%s, %" PRIu64 " }, %" PRIu64 " }%s",
                          part ? ", " : "    { ", pieces[c->memory].piece, c->offset, c->bytes,
                          part ? " },\n" : "");
        }
    strbuf_put(out, "};\n\n");
    if (p->tile_count) {
        strbuf_format(out, "static const ptxgen_tiles %s_tiles[] = {\n", set->prefix);
        for (size_t i = 0; i < p->tile_count; i++)
            strbuf_format(out, "    { %" PRId64 ", %" PRIu64 " },\n", p->tiles[i].rows,
                          p->tiles[i].offset);
        strbuf_put(out, "};\n\n");
    }
    strbuf_format(out,
                  "const ptxgen_decoder_plan %s_plan = {\n"
                  "    \"%s\", \"%s\",\n"
                  "    %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                  ", /* layers, hidden, vocab, max_seq_len */\n"
                  "    %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                  ", /* rows, sequences, page, sequence_pages */\n    %" PRId64
                  ", %d, /* ring, recurrent */\n    { ",
                  set->prefix, set->prefix, model->architecture, model->layers, model->hidden,
                  model->vocab, model->max_seq_len, p->rows, model->sequences, model->page,
                  plan_pages(model), shortest_ring(model),
                  decoder_first_layer(model, PART_RECURRENT) >= 0);
    for (size_t i = 0; i < PLAN_MEMORIES; i++)
        strbuf_format(out, "%s%" PRIu64, i ? ", " : "", p->bytes[i]);
    strbuf_format(out,
                  " }, /* bytes */\n    %s_caches, %" PRId64 ", /* cache_count */\n"
                  "    %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
                  ", /* tokens, positions, lengths, row_sequences */\n    ",
                  set->prefix, decoder_slots(model), s->tokens, s->positions, s->lengths,
                  s->sequences);
    put_list(out, set->prefix, "tiles", p->tile_count);
    strbuf_format(
        out,
        "/* tiles */\n    %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
        ", /* chosen, and their positions, sequences, tokens */\n"
        "    %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", /* page_table, sampling, logits */\n"
        "    %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
        ", /* history, penalties, biases, mask, logprobs, best */\n"
        "    %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRIu64 ", %" PRId64 ", /* their sizes */\n"
        "    %s_plan_steps, %zu, %s_tensors, %zu,\n",
        s->chosen, s->chosen_positions, s->chosen_sequences, s->chosen_tokens, s->pages,
        s->sampling, s->logits, s->history, s->penalties, s->biases, s->mask, s->logprobs, s->best,
        plan_history(model), model->penalties, model->biases, plan_mask_words(model),
        model->logprobs, set->prefix, p->step_count, set->prefix, p->tensor_count);
    strbuf_put(out, "    ");
    put_list(out, set->prefix, "keys", file->key_count);
    put_list(out, set->prefix, "ignored_tensors", file->ignored_tensor_count);
    put_quoted(out, file->edited);
    strbuf_put(out, ",\n};\n\n");
}

void header_print_plan(strbuf *out, const described_set *d, header_place place)
{
    static const char text[] =
        " * The model's step, with one call for all its kernels:\n"
        " *\n"
        " *     static @PREFIX@_decoder model;                     device memory: "
        "@PREFIX@_plan.bytes\n"
        " *     r = @PREFIX@_create(&model, &cuda, NULL);\n"
        " *     r = @PREFIX@_load_tensor(&model, &@PREFIX@_tensors[i], data, bytes);     for each "
        "tensor\n"
        " *     r = @PREFIX@_prompt(&model, stream, tokens, count);\n"
        " *     r = @PREFIX@_step(&model, stream);                 for each token; may be captured "
        "in a graph\n"
        " *     r = @PREFIX@_token(&model, stream, &token);\n"
        " *\n";
    switch (place) {
    case HEADER_PLAN_HEAD:
        header_fill(out, text, d);
        break;
    case HEADER_PLAN_TYPES:
        strbuf_char(out, '\n');
        header_fill(out, template_header_plan_h_in, d);
        break;
    case HEADER_PLAN_DECLARATIONS:
        print_plan_declarations(out, d);
        break;
    case HEADER_PLAN_DATA:
        print_plan_data(out, d);
        break;
    case HEADER_PLAN_FUNCTIONS:
        header_fill(out, template_header_decoder_h_in, d);
        break;
    }
}
