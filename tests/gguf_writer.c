#include "gguf_writer.h"

gguf_writer gguf_start(arena *a, uint32_t version, uint64_t tensors, uint64_t keys)
{
    gguf_writer w = { strbuf_new(a) };
    strbuf_put(&w.out, "GGUF");
    gguf_put(&w, version, 4);
    gguf_put(&w, tensors, 8);
    gguf_put(&w, keys, 8);
    return w;
}

void gguf_put(gguf_writer *w, uint64_t number, unsigned width)
{
    for (; width; width--, number >>= 8)
        strbuf_char(&w->out, (char)(number & 255));
}

void gguf_put_string(gguf_writer *w, const char *text)
{
    gguf_put(w, strlen(text), 8);
    strbuf_put(&w->out, text);
}

void gguf_put_key(gguf_writer *w, const char *name, uint32_t type)
{
    gguf_put_string(w, name);
    gguf_put(w, type, 4);
}

void gguf_put_number(gguf_writer *w, const char *name, gguf_value type, uint64_t bits)
{
    gguf_put_key(w, name, type);
    gguf_put(w, bits, (unsigned)gguf_value_bytes(type));
}

void gguf_put_f32(gguf_writer *w, const char *name, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    gguf_put_number(w, name, GGUF_F32, bits);
}

void gguf_put_text(gguf_writer *w, const char *name, const char *text)
{
    gguf_put_key(w, name, GGUF_STRING);
    gguf_put_string(w, text);
}

void gguf_put_array(gguf_writer *w, const char *name, uint32_t type, uint64_t count)
{
    gguf_put_key(w, name, GGUF_ARRAY);
    gguf_put(w, type, 4);
    gguf_put(w, count, 8);
}

void gguf_put_tensor(gguf_writer *w, const char *name, const uint64_t *ne, uint32_t type,
                     uint64_t offset)
{
    uint32_t count = 0;
    while (ne[count])
        count++;
    gguf_put_string(w, name);
    gguf_put(w, count, 4);
    for (uint32_t i = 0; i < count; i++)
        gguf_put(w, ne[i], 8);
    gguf_put(w, type, 4);
    gguf_put(w, offset, 8);
}

void gguf_pad(gguf_writer *w, size_t alignment)
{
    while (w->out.length % alignment)
        strbuf_char(&w->out, '\0');
}
