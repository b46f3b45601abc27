/* The passes, in their order: unreachable code, order, copies and unused results, verifier,
 * printer. Constants folded while building. */
#include "ptx/ir.h"

static void simplify(ptx *p)
{
    if (p->has_unreachable)
        ptx_remove_unreachable(p);
    ptx_order(p); /* leaves out values that nobody uses */
    ptx_remove_unused(p);
}

static bool verify(ptx *p)
{
    ptx_flow flow = { 0 };
    return ptx_check_instructions(p) && ptx_flow_build(p, &flow) &&
           ptx_check_definitions(p, &flow) && ptx_check_uniform(p, &flow);
}

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
    ptx_print(p, &out);
    strbuf_format(p->dump, "// %s after %s\n%s\n", p->name, name, out.text);
}

bool ptx_finish(ptx *p, ptx_output *out, const char **error)
{
    ptx_append(p, OP_RET, NO_TYPE);
    ptx_list_instructions(p);
    dump(p, PTX_STAGE_BUILD, "build");
    if (!p->error)
        simplify(p);
    dump(p, PTX_STAGE_FOLD, "fold");
    if (p->error || !verify(p)) {
        *error = p->error;
        return false;
    }
    dump(p, PTX_STAGE_PRINT, "print");
    ptx_print(p, out);
    return true;
}
