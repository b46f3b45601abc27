/* Prints a decoder as a section that parses back to it. */
#include <string.h>

#include "model/section/decoder_section.h"
#include "model/section/decoder_keys.h"

enum { NOTE_COLUMN = 39, LINE_WIDTH = 100, LEAST_RUN = 3, LEAST_STRIDE = 4 };

/* A line: key = item, item, ... */
typedef struct line {
    const char *key;
    VEC(const char *) items;
} line;

typedef struct printer {
    arena *arena;
    const decoder *decoder;
    VEC(line) keys, formats, metadata; /* each group aligns its own '=' */
} printer;

static void add_item(printer *p, line *to, const char *text)
{
    *VEC_PUSH(p->arena, &to->items) = text;
}

static line *add_line(printer *p, const char *name, const char *text)
{
    line *added = VEC_PUSH(p->arena, &p->keys);
    *added = (line){ .key = name };
    if (text)
        add_item(p, added, text);
    return added;
}

/* Returns how many layers of the set follow each other at the stride, from first on. */
static int64_t run_length(const bool *set, int64_t layers, int64_t first, int64_t stride)
{
    int64_t count = 1, at = first;
    for (;; count++, at += stride) {
        int64_t next = at + 1;
        while (next < layers && !set[next])
            next++;
        if (next >= layers || next != at + stride)
            return count;
    }
}

/* Adds items "0..3", "7", "10..25:3". head precedes the first. */
static void add_layers(printer *p, line *to, const bool *set, const char *head)
{
    int64_t layers = p->decoder->layers, next;
    for (int64_t at = 0; at < layers; at = next) {
        next = at + 1;
        if (!set[at])
            continue;
        while (next < layers && !set[next])
            next++;
        int64_t stride = next - at, count = run_length(set, layers, at, stride);
        int64_t last = at + (count - 1) * stride;
        if (stride > 1 && run_length(set, layers, last, 1) >= LEAST_RUN) {
            count--; /* leave the last to a run of neighbours */
            last -= stride;
        }
        if (next < layers && count >= (stride > 1 ? LEAST_STRIDE : LEAST_RUN)) {
            const char *step = stride > 1 ? arena_format(p->arena, ":%lld", (long long)stride) : "";
            add_item(p, to,
                     arena_format(p->arena, "%s%lld..%lld%s", head, (long long)at, (long long)last,
                                  step));
            next = last + 1;
        } else {
            add_item(p, to, arena_format(p->arena, "%s%lld", head, (long long)at));
            next = at + 1;
        }
        head = "";
    }
}

static void add_value(printer *p, const setting *s)
{
    enum { KIBI = 1024 };
    int64_t value = setting_value(s, p->decoder, 0);
    if (!s->key.required && !s->shown && value == setting_default(s, p->decoder, 0))
        return;
    add_line(p, s->key.name,
             s->kibi && value % KIBI == 0
                 ? arena_format(p->arena, "%lldk", (long long)(value / KIBI))
                 : setting_text(p->arena, s, value));
}

static void add_layers_of(printer *p, const setting *s)
{
    const decoder *d = p->decoder;
    bool set[DECODER_MOST_LAYERS], usual = true, any = false;
    for (int64_t l = 0; l < d->layers; l++) {
        int64_t value = setting_value(s, d, l);
        set[l] = value;
        usual &= value == setting_default(s, d, l);
        any |= set[l];
    }
    if (!usual)
        add_layers(p, add_line(p, s->key.name, any ? NULL : NO_LAYERS), set, "");
}

/* Adds the most frequent value of a setting, then the values of other layers. Values that an absent
 * key gives are not printed: the layer's own number, or no limit. */
static void add_by_layer(printer *p, const setting *s)
{
    const decoder *d = p->decoder;
    bool usual = !s->key.required && !s->shown, done[DECODER_MOST_LAYERS] = { false };
    bool has_rest = s->derive != derive_own_layer && (s->key.required || !s->key.real);
    int64_t rest = 0, most = 0;
    for (int64_t l = 0; l < d->layers; l++) {
        int64_t value = setting_value(s, d, l), count = 0;
        done[l] = !setting_has_layer(s, d, l) || (!has_rest && value == setting_default(s, d, l));
        usual &= done[l] || value == setting_default(s, d, l);
        for (int64_t other = 0; other < d->layers; other++)
            count += setting_has_layer(s, d, other) && setting_value(s, d, other) == value;
        if (!done[l] && count > most) {
            most = count;
            rest = value;
        }
    }
    if (usual)
        return;
    line *to = add_line(p, s->key.name, NULL);
    if (has_rest)
        add_item(p, to, setting_text(p->arena, s, rest));
    for (int64_t l = 0; l < d->layers; l++) {
        bool set[DECODER_MOST_LAYERS] = { false };
        int64_t value = setting_value(s, d, l);
        if (done[l] || (has_rest && value == rest))
            continue;
        for (int64_t other = l; other < d->layers; other++) {
            set[other] = !done[other] && setting_value(s, d, other) == value;
            done[other] |= set[other];
        }
        add_layers(p, to, set, arena_format(p->arena, "%s: ", setting_text(p->arena, s, value)));
    }
}

static void add_rows(printer *p, const setting *s)
{
    line *rows = add_line(p, s->key.name, NULL);
    for (int64_t i = 0; i < p->decoder->m_count; i++)
        add_item(p, rows, arena_format(p->arena, "%lld", (long long)p->decoder->m[i]));
}

static void add_tensors(printer *p, const setting *s)
{
    line *words = NULL;
    for (const choice *c = s->key.choices; c->word; c++) {
        unsigned t = s->words[c - s->key.choices];
        if (s->kind == SETTING_RENAMED ? !p->decoder->renamed[t] : !p->decoder->has[t])
            continue;
        if (!words)
            words = add_line(p, s->key.name, NULL);
        add_item(p, words, c->word);
    }
}

static void add_tensor(printer *p, const setting *s)
{
    if (p->decoder->has[s->words[0]])
        add_line(p, s->key.name, s->key.choices[1].word);
}

static void add_output(printer *p, const setting *s)
{
    if (!p->decoder->has[TENSOR_OUTPUT])
        add_line(p, s->key.name, "tied");
}

static void add_factors(printer *p, const setting *s)
{
    for (int t = TENSOR_ROPE_FREQS; t <= TENSOR_ROPE_SHORT; t++)
        if (p->decoder->has[t]) {
            add_line(p, s->key.name, s->key.choices[1 + t - TENSOR_ROPE_FREQS].word);
            return;
        }
}

static uint8_t most_frequent(const size_t counts[FORMAT_COUNT])
{
    size_t best = 0;
    for (size_t f = 1; f < FORMAT_COUNT; f++)
        if (counts[f] > counts[best])
            best = f;
    return (uint8_t)best;
}

/* Adds a line with a tensor's formats unless usual: the most frequent first. */
static void add_formats(printer *p, unsigned t, uint8_t usual)
{
    const decoder *d = p->decoder;
    uint8_t by_layer[DECODER_MOST_LAYERS];
    size_t counts[FORMAT_COUNT] = { 0 }, all = 0;
    for (int64_t l = 0; l < decoder_copies(d, t); l++) {
        by_layer[l] = FORMAT_NONE; /* the layer has no tensor of this name */
        for (unsigned of = 0; of < TENSOR_COUNT; of++)
            if (decoder_has(d, of, l) && strcmp(tensor_infos[of].name, tensor_infos[t].name) == 0)
                by_layer[l] = d->formats[of][l];
        counts[by_layer[l]] += by_layer[l] != FORMAT_NONE;
        all += by_layer[l] != FORMAT_NONE;
    }
    if (counts[usual] == all)
        return;
    line *formats_of = VEC_PUSH(p->arena, &p->formats);
    *formats_of = (line){ .key = formats_key(p->arena, t) };
    uint8_t rest = counts[usual] ? usual : most_frequent(counts);
    if (rest != usual)
        add_item(p, formats_of, formats[rest].name);
    for (unsigned f = 0; f < FORMAT_COUNT; f++) {
        bool set[DECODER_MOST_LAYERS] = { false };
        if (f == rest || !counts[f])
            continue;
        for (int64_t l = 0; l < decoder_copies(d, t); l++)
            set[l] = by_layer[l] == f;
        add_layers(p, formats_of, set, arena_format(p->arena, "%s: ", formats[f].name));
    }
}

static void add_weights(printer *p, const setting *s)
{
    const decoder *d = p->decoder;
    size_t counts[FORMAT_COUNT] = { 0 };
    for (unsigned t = 0; t < TENSOR_COUNT; t++)
        for (int64_t l = 0; decoder_has_matrix(d, t) && l < decoder_copies(d, t); l++)
            if (decoder_has(d, t, l) && tensor_usual_format(t, FORMAT_NONE) == FORMAT_NONE)
                counts[d->formats[t][l]]++;
    uint8_t common = most_frequent(counts);
    line *all = VEC_PUSH(p->arena, &p->formats);
    *all = (line){ .key = s->key.name };
    add_item(p, all, formats[common].name);
    for (unsigned t = 0; t < TENSOR_COUNT; t++)
        if (decoder_has_matrix(d, t) && tensor_is_first(d, t))
            add_formats(p, t, (uint8_t)tensor_usual_format(t, common));
}

static void add_metadata(printer *p, const setting *s)
{
    (void)s;
    const decoder *d = p->decoder;
    for (size_t i = 0; i < d->metadata_count; i++) {
        line *added = VEC_PUSH(p->arena, &p->metadata);
        *added =
            (line){ .key = arena_format(p->arena, "%s%s", METADATA_PREFIX, d->metadata[i].name) };
        for (const char *at = d->metadata[i].text; *at;) {
            size_t length = strcspn(at, ",");
            add_item(p, added, arena_copy(p->arena, at, length));
            at += length;
            at += strspn(at, ", ");
        }
    }
}

static void add_name(printer *p, const setting *s)
{
    add_line(p, s->key.name, p->decoder->architecture);
}

/* Prints a line, wrapped with indentation if it is long. */
static void put_line(strbuf *out, const line *l, size_t width, const decoder_note *notes)
{
    size_t start = out->length;
    strbuf_put(out, l->key);
    strbuf_pad(out, start, width);
    strbuf_put(out, " =");
    for (size_t i = 0; i < l->items.count; i++) {
        bool last = i + 1 == l->items.count;
        if (i && out->length - start + strlen(l->items.items[i]) > LINE_WIDTH) {
            strbuf_char(out, '\n');
            start = out->length;
            strbuf_pad(out, start, width + 2);
        }
        strbuf_format(out, " %s%s", l->items.items[i], last ? "" : ",");
    }
    const char *note = NULL;
    for (const setting *s = decoder_settings; notes && s->key.name; s++)
        if (strcmp(s->key.name, l->key) == 0 && start + LINE_WIDTH > out->length)
            note = s->key.summary;
    for (; notes && notes->key; notes++)
        note = strcmp(notes->key, l->key) == 0 ? notes->text : note;
    if (note) {
        strbuf_pad(out, start, NOTE_COLUMN);
        strbuf_format(out, " ; %s", note);
    }
    strbuf_char(out, '\n');
}

static size_t key_width(const line *lines, size_t count)
{
    size_t width = 0;
    for (size_t i = 0; i < count; i++)
        if (strlen(lines[i].key) > width)
            width = strlen(lines[i].key);
    return width;
}

void decoder_print(strbuf *out, const decoder *d, const decoder_note *notes)
{
    /* add_weights adds the formats of single tensors, too. */
    static void (*const adders[])(printer * p, const setting *s) = {
        [SETTING_VALUE] = add_value,       [SETTING_NAME] = add_name,
        [SETTING_BY_LAYER] = add_by_layer, [SETTING_LAYERS] = add_layers_of,
        [SETTING_ROWS] = add_rows,         [SETTING_TENSORS] = add_tensors,
        [SETTING_TENSOR] = add_tensor,     [SETTING_OUTPUT] = add_output,
        [SETTING_FACTORS] = add_factors,   [SETTING_WEIGHTS] = add_weights,
        [SETTING_FORMATS] = NULL,          [SETTING_METADATA] = add_metadata,
        [SETTING_RENAMED] = add_tensors,
    };
    printer p = { .arena = out->arena, .decoder = d };
    for (const setting *s = decoder_settings; s->key.name; s++)
        if (setting_matters(s, d) && adders[s->kind])
            adders[s->kind](&p, s);
    size_t of_model = 0;
    while (of_model < p.keys.count && strcmp(p.keys.items[of_model].key, "max_seq_len") != 0)
        of_model++;
    size_t width = key_width(p.keys.items, p.keys.count);
    const struct {
        const char *heading;
        const line *lines;
        size_t count, width;
    } groups[] = {
        { "The model. These keys decide the logits: they have to be the file's.", p.keys.items,
          of_model, width },
        { "The step. Change these keys as you like; ptxgen --help-family decoder lists more.",
          p.keys.items + of_model, p.keys.count - of_model, width },
        { "The file's weight formats: one for all matrices, then exceptions by tensor and layer.",
          p.formats.items, p.formats.count, key_width(p.formats.items, p.formats.count) },
        { "The file's metadata, which loaders compare with the file they read. No kernel uses it.",
          p.metadata.items, p.metadata.count, key_width(p.metadata.items, p.metadata.count) },
    };
    strbuf_format(out, "[%s]\n", DECODER_SECTION);
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        if (notes && groups[g].count)
            strbuf_format(out, "%s; %s\n", g ? "\n" : "", groups[g].heading);
        for (size_t i = 0; i < groups[g].count; i++)
            put_line(out, &groups[g].lines[i], groups[g].width, notes);
    }
}
