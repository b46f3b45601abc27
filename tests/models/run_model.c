/* Runs a model through its generated header and writes its logits.
 *
 *     run_model MODEL.gguf TOKENS LOGITS MOST [GREEDY]
 *
 * TOKENS is a text file of token numbers. A step gets at most MOST of them. LOGITS gets the logits
 * of every token, f32 [tokens, vocab]. With GREEDY = N, the next N tokens are printed, one per
 * line, each by the launch of a graph. */
#include <stdbool.h>
#include <stdint.h>

#define PROGRAM "run_model"
#include "loaded_model.h"

enum { MOST_TOKENS = 4096 };

static size_t read_tokens(const char *path, uint32_t tokens[MOST_TOKENS])
{
    FILE *file = fopen(path, "r");
    size_t count = 0;
    while (file && count < MOST_TOKENS && fscanf(file, "%u", &tokens[count]) == 1)
        count++;
    if (file)
        fclose(file);
    return count;
}

/* Runs the tokens, and writes the logits that each step leaves. */
static void feed(const model_decoder *model, const uint32_t *tokens, size_t count, size_t most,
                 FILE *out)
{
    size_t row_bytes = (size_t)model_plan.vocab * sizeof(float);
    float *logits = malloc(most * row_bytes);
    for (size_t at = 0; logits && at < count; at += most) {
        size_t taken = count - at < most ? count - at : most;
        const ptxgen_plan_step *step = ptxgen_step_for(&model_plan, taken);
        check("prompt", model_prompt(model, NULL, tokens + at, taken));
        check("wait", cuStreamSynchronize(NULL));
        size_t rows = step->logits_rows < taken ? step->logits_rows : taken;
        CUdeviceptr last = model_logits(model) + (step->logits_rows - rows) * row_bytes;
        check("logits", cuMemcpyDtoH_v2(logits, last, rows * row_bytes));
        fwrite(logits, row_bytes, rows, out);
    }
    free(logits);
}

static void print_greedy(const model_decoder *model, size_t count)
{
    CUstream stream;
    check("stream", cuStreamCreate(&stream, 0));
    CUgraphExec executable = record_step(model, stream);
    for (size_t i = 0; i < count; i++) {
        uint32_t token;
        check("token", model_token(model, stream, &token));
        printf("%u\n", token);
        check("launch", cuGraphLaunch(executable, stream));
    }
    check("wait", cuStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
    static uint32_t tokens[MOST_TOKENS];
    if (argc < 5)
        return 2;
    model_cuda cuda;
    model_decoder model;
    if (!open_device(&cuda))
        give_up("cuInit", "no device");
    check("create", model_create(&model, &cuda, NULL));
    load_weights(&model, argv[1]);
    FILE *out = fopen(argv[3], "wb");
    if (!out)
        return 1;
    feed(&model, tokens, read_tokens(argv[2], tokens), (size_t)atoi(argv[4]), out);
    fclose(out);
    if (argc > 5 && atoi(argv[5]) > 0)
        print_greedy(&model, (size_t)atoi(argv[5]));
    check("destroy", model_destroy(&model));
    return 0;
}
