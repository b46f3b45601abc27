/* Queries of a parsed module. */
#include "emu/module.h"

const entry *module_entry(const emu_module *m, const char *name)
{
    size_t number = name_map_find(&m->entry_numbers, name);
    return number < m->entries.count ? m->entries.items[number] : NULL;
}

void emu_module_describe(const emu_module *m, emu_module_info *info)
{
    *info = (emu_module_info){
        .target = m->target, .specific = m->specific, .isa = m->isa, .entry_count = m->entries.count
    };
    for (size_t i = 0; i < m->globals.count; i++) {
        const variable *v = m->globals.items[i];
        if (v->space == SPACE_CONST)
            info->constant_bytes = round_up(info->constant_bytes, v->align) + (size_t)v->size;
    }
}

const char *emu_entry_name(const emu_module *m, size_t index)
{
    return index < m->entries.count ? m->entries.items[index]->name : NULL;
}

bool emu_unknown(const emu_module *m, size_t index, emu_report *what)
{
    bool there = index < m->unknown.count;
    if (there)
        *what = m->unknown.items[index];
    return there;
}

/* Returns the total size of variables, without the gaps that the emulator adds between them. */
static size_t packed_bytes(const variables *all)
{
    size_t bytes = 0;
    for (size_t i = 0; i < all->list.count; i++) {
        const variable *v = all->list.items[i];
        if (!v->dynamic && !v->parameter)
            bytes = (size_t)(round_up(bytes, v->align) + v->size);
    }
    return bytes;
}

bool emu_entry(const emu_module *m, const char *name, emu_entry_info *info)
{
    const entry *e = module_entry(m, name);
    if (!e)
        return false;
    *info = e->info;
    info->number = name_map_find(&m->entry_numbers, name);
    info->param_count = (unsigned)e->params.count;
    info->shared_bytes = packed_bytes(&e->shared);
    info->local_bytes = packed_bytes(&e->local);
    return true;
}

bool emu_param(const emu_module *m, const char *name, size_t index, size_t *offset, size_t *size)
{
    const entry *e = module_entry(m, name);
    if (!e || index >= e->params.count)
        return false;
    *offset = e->params.items[index].offset;
    *size = e->params.items[index].size;
    return true;
}
