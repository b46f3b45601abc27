/* Prints a kernel's PTX as a NUL-terminated array of characters, in one of three ways.
 *
 * string: a string literal with one source line per line or few lines of PTX, each ended by a
 * backslash. It is a single token, which compilers read faster than one literal per line. MSVC
 * accepts 16380 bytes per literal and 65535 per concatenation: longer text is split into literals,
 * and above the second limit becomes an array of words.
 *
 * c23, incbin: the compiler reads the .ptx file. The header contains the file's checksum, so that
 * everything that depends on the header is rebuilt when ptxgen changes the file, even if the
 * compiler reports no dependency on it. ptxgen_is_intact compares the checksum. */
#include "emit/header_parts.h"

#include <inttypes.h>

#include "base/hash.h"

enum { LONGEST_LITERAL = 8000, LONGEST_STRING = 65534, WORDS_A_LINE = 8, LONGEST_LINE = 80 };

/* Prints a string literal's contents: a line per line of PTX; dense text by LONGEST_LINE. */
static void print_text(strbuf *out, const char *text, size_t length, bool dense)
{
    size_t line = out->length;
    for (size_t at = 0; at < length; at++) {
        char c = text[at];
        unsigned byte = (unsigned char)c;
        if (c == '\n')
            strbuf_put(out, "\\n");
        else if (c == '"' || c == '\\' || c == '?') /* ??= etc. are trigraphs */
            strbuf_bytes(out, (char[]){ '\\', c }, 2);
        else if (c < ' ' || c > '~')
            strbuf_format(out, "\\%u%u%u", byte >> 6, byte >> 3 & 7, byte & 7);
        else
            strbuf_char(out, c);
        bool full = out->length - line > LONGEST_LINE;
        if (c == '\n' ? full || !dense : c == ';' && full) {
            strbuf_put(out, "\\\n");
            line = out->length;
        }
    }
}

/* Prints literals of whole lines, at most LONGEST_LITERAL bytes each; a longer line is split. */
static void print_as_string(strbuf *out, const char *text, size_t length, bool dense)
{
    for (size_t at = 0; at < length || at == 0;) {
        size_t taken = length - at;
        if (taken > LONGEST_LITERAL) {
            taken = LONGEST_LITERAL;
            while (taken && text[at + taken - 1] != '\n')
                taken--;
            taken = taken ? taken : LONGEST_LITERAL;
        }
        strbuf_put(out, at ? "\n\"\\\n" : " \"\\\n");
        print_text(out, text + at, taken, dense);
        strbuf_char(out, '"');
        at += taken ? taken : 1;
    }
    strbuf_put(out, ";\n");
}

/* Prints little-endian words of eight bytes: hosts with CUDA GPUs are little-endian. */
static void print_as_words(strbuf *out, const char *text, size_t length)
{
    enum { BYTES = 8, BITS = 8 };
    strbuf_put(out, " {");
    for (size_t i = 0; i <= length; i += BYTES) {
        uint64_t word = 0;
        for (size_t j = 0; j < BYTES && i + j < length; j++)
            word |= (uint64_t)(unsigned char)text[i + j] << BITS * j;
        strbuf_put(out, i / BYTES % WORDS_A_LINE ? "" : "\n");
        strbuf_format(out, "0x%" PRIx64 ",", word);
    }
    strbuf_put(out, "\n};\n");
}

bool is_printed_as_words(const kernel_set *set, const description *d)
{
    return set->embed == EMBED_STRING && d->text.length > LONGEST_STRING;
}

static void print_checksum(strbuf *out, const description *d)
{
    strbuf_format(out, "/* %s: %zu bytes, FNV-1a %s */\n", d->kernel->file, d->kernel->ptx_length,
                  fnv1a64_text(out->arena, d->checksum));
}

void print_ptx(strbuf *out, const kernel_set *set, const description *d)
{
    const kernel *k = d->kernel;
    switch (set->embed) {
    case EMBED_C23:
        print_checksum(out, d);
        strbuf_format(out,
                      "static const char %s_ptx[] = {\n#embed \"%s\" suffix(,)\n    0\n};\n"
                      "static_assert(sizeof %s_ptx == %zu + 1, "
                      "\"%s was changed: run ptxgen again\");\n",
                      d->id, k->file, d->id, k->ptx_length, k->file);
        break;
    case EMBED_INCBIN:
        print_checksum(out, d);
        strbuf_format(out, "PTXGEN_INCBIN(%s_ptx, ", d->id);
        strbuf_upper(out, set->prefix);
        strbuf_format(out, "_KERNELS_FOLDER \"%s\");\n", k->file);
        break;
    default:
        if (is_printed_as_words(set, d)) {
            strbuf_format(out, "static const uint64_t %s_ptx[] =", d->id);
            print_as_words(out, d->text.text, d->text.length);
            break;
        }
        strbuf_format(out, "static const char %s_ptx[] =", d->id);
        print_as_string(out, d->text.text, d->text.length, d->text.behind != NULL);
    }
}
