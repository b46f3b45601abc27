#include "cli/starter.h"

#include <string.h>

#include "base/os.h"
#include "emit/tree.h"
#include "templates/templates.h"

#define TEMPLATE(path, name)                           \
    {                                                  \
        path, template_##name, &template_##name##_size \
    }

static const struct {
    const char *path, *text;
    const size_t *size;
} starter_files[] = {
    TEMPLATE("engine.c", engine_c),
    TEMPLATE("options.c", options_c),
    TEMPLATE("options.h", options_h),
    TEMPLATE("tokenizer.c", tokenizer_c),
    TEMPLATE("tokenizer.h", tokenizer_h),
    TEMPLATE("vocabulary.c", vocabulary_c),
    TEMPLATE("vocabulary.h", vocabulary_h),
    TEMPLATE("split.c", split_c),
    TEMPLATE("split.h", split_h),
    TEMPLATE("pre_tokenizers.def", pre_tokenizers_def),
    TEMPLATE("gguf.c", gguf_c),
    TEMPLATE("gguf.h", gguf_h),
    TEMPLATE("gguf_header.h", gguf_header_h),
    TEMPLATE("gguf_parse.c", gguf_parse_c),
    TEMPLATE("gguf_value.c", gguf_value_c),
    TEMPLATE("meson.build", meson_build),
    TEMPLATE("meson_options.txt", meson_options_txt),
    TEMPLATE("model.ini", model_ini),
};
enum { STARTER_FILES = sizeof starter_files / sizeof *starter_files };

bool starter_write(arena *a, const char *folder, const strbuf *spec, size_t *count, diags *d)
{
    output_file files[STARTER_FILES] = { 0 };
    size_t errors = d->errors;
    for (size_t i = 0; i < STARTER_FILES; i++) {
        bool is_spec = spec && starter_files[i].text == template_model_ini;
        files[i].path = path_in(a, folder, starter_files[i].path);
        files[i].bytes = is_spec ? spec->text : starter_files[i].text;
        files[i].size = is_spec ? spec->length : *starter_files[i].size;
        if (os_exists(files[i].path))
            diag_error(d, DIAG_UNWRITABLE, (location){ .file = files[i].path },
                       "exists already, and is left as it is");
    }
    *count = STARTER_FILES;
    return d->errors == errors && emit_tree(a, files, STARTER_FILES, d);
}
