#include "libcuda/checks.h"

#include <string.h>

#include "libcuda/module.h"

static const char *const action_names[] = {
    [EMU_STOPS] = "fault", [EMU_WARNS] = "warn", [EMU_PASSES] = "off"
};
enum { ACTIONS = sizeof action_names / sizeof *action_names, MOST_NAMES = 100 };

/* A kernel goes on in spite of what was found. */
static void warn(void *context, const emu_launch_config *launch, const emu_report *report)
{
    (void)context;
    CUmodule m = NULL;
    do
        m = handle_next(MODULE_HANDLE, m);
    while (m && m->module != launch->module);
    say("warning: %s: line %u, block (%u, %u, %u), thread (%u, %u, %u): %s", launch->entry,
        report->line, report->block[0], report->block[1], report->block[2], report->thread[0],
        report->thread[1], report->thread[2], report->message);
    if (m)
        module_say_line(m, report->line);
}

static bool is_word(const char *word, const char *text, size_t length)
{
    return strlen(word) == length && strncmp(word, text, length) == 0;
}

/* kind=action, or all=action. False where there is none of that name. */
static bool take(emu_checks *c, const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t kind = equals ? (size_t)(equals - text) : length;
    int action = 0;
    bool found = false;
    while (equals && action < ACTIONS &&
           !is_word(action_names[action], equals + 1, length - kind - 1))
        action++;
    for (int i = 0; equals && action < ACTIONS && i < EMU_CHECK_COUNT; i++)
        if (is_word("all", text, kind) || is_word(emu_check_name((emu_check)i), text, kind)) {
            c->actions[i] = (emu_action)action;
            found = true;
        }
    return found;
}

static void say_names(const char *text, size_t length)
{
    char names[MOST_NAMES] = "all";
    for (int i = 0; i < EMU_CHECK_COUNT; i++) {
        strcat(names, ", ");
        strcat(names, emu_check_name((emu_check)i));
    }
    say("PTXGEN_CUDA_CHECKS: '%.*s' is none of CHECK=fault, CHECK=warn and CHECK=off; CHECK is one "
        "of %s",
        (int)length, text, names);
}

static emu_checks read_checks(void)
{
    emu_checks c = { .carries = true, .warn = warn };
    const char *text = setting("PTXGEN_CUDA_CHECKS");
    for (int i = 0; i < EMU_CHECK_COUNT; i++)
        c.actions[i] = EMU_WARNS;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        if (!take(&c, text, length))
            say_names(text, length);
        text += length;
        text += *text == ',';
    }
    return c;
}

const emu_checks *checks_of_device(void)
{
    emu_checks *checks = device_checks();
    if (!checks->warn)
        *checks = read_checks();
    return checks;
}
