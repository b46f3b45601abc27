/* The passes, in their order: dead code, order, copies, verifier, printer. Constants folded while
 * building. */
#include "ptx/ir.h"

static void simplify(ptx *p)
{
    ptx_remove_unreachable(p);
    ptx_order(p); /* leaves out values that nobody uses */
    ptx_join_copies(p);
    ptx_remove_unused(p); /* and now variables that nobody reads */
}

static bool verify(ptx *p)
{
    ptx_flow flow = { 0 };
    return ptx_check_instructions(p) && ptx_flow_build(p, &flow) &&
           ptx_check_definitions(p, &flow) && ptx_check_uniform(p, &flow);
}

bool ptx_finish(ptx *p, ptx_output *out, const char **error)
{
    ret(p);
    ptx_list_instructions(p);
    if (!p->error)
        simplify(p);
    if (p->error || !verify(p)) {
        *error = p->error;
        return false;
    }
    ptx_print(p, out);
    return true;
}
