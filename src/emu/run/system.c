/* The system functions that assert(), printf(), malloc() and free() of device code call. */
#include <stdio.h>

#include "base/strbuf.h"
#include "emu/memory/speculation.h"
#include "emu/run/access.h"

enum { MOST_TEXT = 1 << 16, MOST_SPEC = 64 };

/* Reads from a lane's generic address. Returns false after a fault. */
static bool read_bytes(warp *w, const op *o, int lane, u64 address, void *to, unsigned size)
{
    ptx_space space = space_at(address);
    access x = { w, o, lane, ACCESS_LOAD, space, address - space_window(space), size };
    uint8_t room[sizeof(u64)];
    const uint8_t *bytes = access_read(&x, room);
    if (bytes)
        memcpy(to, bytes, size);
    return bytes;
}

/* Returns the string at a lane's address, or NULL after a fault. */
static const char *read_string(arena *a, warp *w, const op *o, int lane, u64 address)
{
    strbuf text = strbuf_new(a);
    for (char c = 1; address && c && text.length < MOST_TEXT; address++) {
        if (!read_bytes(w, o, lane, address, &c, 1))
            return NULL;
        if (c)
            strbuf_char(&text, c);
    }
    return address ? text.text : "(null)";
}

/* Reports a failed assertion in the format of a device's driver. */
void exec_assert(warp *w, const op *o, lane_mask mask)
{
    const machine *m = w->machine;
    const unsigned *size = m->config->block;
    arena *a = arena_new_in(m->arena);
    strbuf text = strbuf_new(a);
    EACH_LANE (i, mask) {
        unsigned thread = thread_of(w, i);
        const char *expression = read_string(a, w, o, i, get_u64(source(w, o, 0), i));
        const char *file = read_string(a, w, o, i, get_u64(source(w, o, 1), i));
        const char *function = read_string(a, w, o, i, get_u64(source(w, o, 3), i));
        if (has_fault(m))
            break;
        strbuf_format(&text,
                      "%s%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.",
                      text.length ? "\n" : "", file, get_u32(source(w, o, 2), i), function,
                      m->block[0], m->block[1], m->block[2], thread % size[0],
                      thread / size[0] % size[1], thread / size[0] / size[1], expression);
    }
    warp_fault(w, o, lowest_lane(mask), EMU_ASSERT, 0, "%s", text.text);
    arena_free(a);
}

typedef struct print {
    warp *warp;
    const op *op;
    int lane;
    arena *arena;
    strbuf text;
    u64 argument; /* address of the next argument */
    u32 taken;    /* number of arguments read */
} print;

/* Returns the next argument, aligned to its size, or 0 after a fault. */
static u64 next_argument(print *p, unsigned size)
{
    u64 value = 0;
    p->argument = round_up(p->argument, size);
    if (!read_bytes(p->warp, p->op, p->lane, p->argument, &value, size))
        value = 0;
    p->argument += size;
    p->taken++;
    return value;
}

/* Formats an argument. spec: % with flags, width and precision; sizes: the length modifier. */
static bool print_value(print *p, strbuf *spec, const char *sizes, char type)
{
    bool is_long = *sizes && *sizes != 'h';
    unsigned shift = is_long ? 0 : sizes[0] != 'h' ? 32 : sizes[1] == 'h' ? 56 : 48;
    if (!type || !strchr("diouxXeEfFgGaAcps", type))
        return false;
    if (strchr("diouxX", type))
        strbuf_put(spec, "ll");
    strbuf_char(spec, type);
    if (strchr("diouxX", type)) {
        u64 value = next_argument(p, is_long ? 8 : 4) << shift;
        if (strchr("di", type))
            strbuf_format(&p->text, spec->text, (long long)((s64)value >> shift));
        else
            strbuf_format(&p->text, spec->text, (ull)(value >> shift));
    } else if (type == 'c') {
        strbuf_format(&p->text, spec->text, (int)next_argument(p, 4));
    } else if (type == 'p') {
        strbuf_format(&p->text, spec->text, (void *)(uintptr_t)next_argument(p, 8));
    } else if (type == 's') {
        const char *text = read_string(p->arena, p->warp, p->op, p->lane, next_argument(p, 8));
        strbuf_format(&p->text, spec->text, text ? text : "");
    } else {
        double real = double_of_bits(next_argument(p, 8));
        int length = snprintf(NULL, 0, spec->text, real);
        char *to = strbuf_reserve(&p->text, length > 0 ? (size_t)length + 1 : 1);
        if (length > 0)
            p->text.length += (size_t)snprintf(to, (size_t)length + 1, spec->text, real);
    }
    return true;
}

/* Formats a conversion after its %, verbatim if it is invalid. Returns the text after it. */
static const char *print_spec(print *p, const char *at)
{
    const char *start = at - 1;
    strbuf spec = strbuf_new(p->arena);
    char sizes[3] = "";
    strbuf_char(&spec, '%');
    for (; *at && strchr("-+ #0123456789.*", *at); at++)
        if (*at == '*')
            strbuf_signed(&spec, (s32)next_argument(p, 4));
        else
            strbuf_char(&spec, *at);
    for (size_t i = 0; *at && strchr("hlLjzt", *at); at++)
        if (i < sizeof sizes - 1)
            sizes[i++] = *at;
    if (*at == '%')
        strbuf_char(&p->text, '%');
    else if (spec.length > MOST_SPEC || !print_value(p, &spec, sizes, *at))
        strbuf_bytes(&p->text, start, (size_t)(at - start) + (*at != '\0'));
    return at + (*at != '\0');
}

/* printf returns the number of arguments. */
void exec_print(warp *w, const op *o, lane_mask mask)
{
    const machine *m = w->machine;
    const emu_launch_config *c = m->config;
    arena *a = arena_new_in(m->arena);
    lanes32 result = { { 0 } };
    EACH_LANE (i, mask) {
        const char *at = read_string(a, w, o, i, get_u64(source(w, o, 0), i));
        print p = { .warp = w, .op = o, .lane = i, .arena = a, .text = strbuf_new(a) };
        p.argument = get_u64(source(w, o, 1), i);
        while (at && *at)
            if (*at != '%')
                strbuf_char(&p.text, *at++);
            else
                at = print_spec(&p, at + 1);
        result.u32[i] = p.taken;
        if (has_fault(m))
            break;
        if (c->print && m->speculation)
            speculation_print(m->speculation, p.text.text, p.text.length);
        else if (c->print)
            c->print(c->print_context, p.text.text, p.text.length);
    }
    write_lanes32(w->file + o->dst[0], &result, mask);
    arena_free(a);
}

void exec_heap_alloc(warp *w, const op *o, lane_mask mask)
{
    if (w->machine->speculation) {
        speculation_abandon(w);
        return;
    }
    u64 given[WARP_LANES] = { 0 };
    EACH_LANE (i, mask)
        given[i] = memory_heap_alloc(w->machine->memory, get_u64(source(w, o, 0), i));
    write_lanes64(w->file + o->dst[0], (const lanes64 *)(const void *)given, mask);
}

void exec_heap_free(warp *w, const op *o, lane_mask mask)
{
    if (w->machine->speculation) {
        speculation_abandon(w);
        return;
    }
    EACH_LANE (i, mask) {
        u64 address = get_u64(source(w, o, 0), i);
        if (!has_fault(w->machine) && address && !memory_heap_free(w->machine->memory, address))
            warp_fault(w, o, i, EMU_OUT_OF_BOUNDS, address,
                       "free: 0x%llx is not a live allocation of the kernel's malloc",
                       (ull)address);
    }
}
