/* Runs the passes in order: unreachable code, order, copies and unused results, loads of data that
 * other launches write, verifier, printer. Constants are folded during building. */
#include "ptx/ir.h"

void ptx_set_dump(ptx *p, unsigned stages, strbuf *out)
{
    p->dump_stages = stages;
    p->dump = out;
}

static void dump(ptx *p, ptx_stage stage, const char *name)
{
    if (!(p->dump_stages & stage))
        return;
    ptx_output out;
    ptx_print(p, p->arena, &out);
    strbuf_format(p->dump, "// %s after %s\n%s\n", p->name, name, out.text);
}

bool ptx_finish(ptx *p, arena *a, ptx_output *out, const char **error)
{
    ptx_append(p, INST_RET, NO_TYPE, NULL, 0);
    ptx_list_instructions(p);
    dump(p, PTX_STAGE_BUILD, "build");
    if (!p->error) {
        if (p->has_unreachable) {
            ptx_remove_unreachable(p);
            ptx_note_places(p);
        }
        ptx_order(p); /* also drops unused values */
        ptx_remove_unused(p);
        if (p->overlaps)
            ptx_load_what_changes(p);
    }
    dump(p, PTX_STAGE_FOLD, "fold");
    if (p->error || !ptx_verify(p)) {
        *error = p->error;
        return false;
    }
    dump(p, PTX_STAGE_PRINT, "print");
    ptx_print(p, a, out);
    return true;
}
