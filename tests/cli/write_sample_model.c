/* Writes a small GGUF file of random shapes without data: the llama sample of the unit tests, with
 * lines of text replaced, added ("key = value", "tensor: columns rows type") or removed ("-key").
 *
 *   write_sample_model FILE ARCHITECTURE [LINE]... */
#include "../unit/model_sample.h"

#include "base/os.h"

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    arena *a = arena_new();
    file_text text = base_text(a, argv[2]);
    for (int i = 3; i < argc; i++)
        edit_line(a, &text, argv[i]);
    gguf_writer w = write_file(a, &text);
    const char *error;
    bool written = os_write_file(a, argv[1], w.out.text, w.out.length, &error);
    if (!written)
        fprintf(stderr, "%s: %s\n", argv[1], error);
    arena_free(a);
    return !written;
}
