/* Parses, prints and compares decoders for the tests of section [decoder]. */
#ifndef PTXGEN_TESTS_DECODER_SAMPLE_H
#define PTXGEN_TESTS_DECODER_SAMPLE_H

#include <string.h>

#include "base/strbuf.h"
#include "model/section/decoder_section.h"
#include "model/section/decoder_keys.h"

/* Parses the first section of text as a decoder. */
static inline bool parse_decoder(arena *a, const char *text, decoder *out, diags *d)
{
    section_list sections = { 0 };
    sections_read(a, "spec.ini", NULL, text, strlen(text), &sections, d);
    return sections.count && decoder_read(a, sections.items[0], out, d);
}

/* Returns the first difference of two decoders, NULL if they are equal. */
static inline const char *decoder_difference(arena *a, const decoder *x, const decoder *y)
{
    for (const setting *s = decoder_settings; s->key.name; s++) {
        bool is_value = s->kind == SETTING_VALUE || s->kind == SETTING_FACTORS;
        bool by_layer = s->kind == SETTING_BY_LAYER || s->kind == SETTING_LAYERS;
        for (int64_t l = 0; l < (by_layer ? x->layers : is_value); l++)
            if (setting_value(s, x, l) != setting_value(s, y, l))
                return s->key.name;
    }
    if (strcmp(x->architecture, y->architecture) != 0)
        return "architecture";
    if (x->m_count != y->m_count || memcmp(x->m, y->m, sizeof x->m) != 0)
        return "m";
    for (unsigned t = 0; t < TENSOR_COUNT; t++) {
        if (x->has[t] != y->has[t])
            return arena_format(a, "has %s", tensor_infos[t].name);
        if (x->renamed[t] != y->renamed[t])
            return arena_format(a, "another name of %s", tensor_infos[t].name);
        if (memcmp(x->formats[t], y->formats[t], sizeof x->formats[t]) != 0)
            return arena_format(a, "formats of %s", tensor_infos[t].name);
    }
    return NULL;
}

#endif
