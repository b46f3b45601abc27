/* Runs a target once on every file of the given folders: the corpus as a test for any compiler. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "tests/fuzz/fuzz.h"

static bool replay(const char *path)
{
    arena *a = arena_new();
    const char *error;
    char *bytes;
    size_t size;
    bool read = os_read_file(a, path, &bytes, &size, &error);
    if (read) {
        uint8_t *exact = malloc(size ? size : 1); /* an exact allocation, so that a sanitizer
                                                     detects reads past the end */
        memcpy(exact, bytes, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    } else {
        fprintf(stderr, "%s: %s\n", path, error);
    }
    arena_free(a);
    return read;
}

int main(int argc, char **argv)
{
    arena *a = arena_new();
    unsigned count = 0;
    bool good = argc > 1;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        good = good && folder;
        for (struct dirent *e; folder && (e = readdir(folder));) {
            if (e->d_name[0] == '.')
                continue;
            const char *path = arena_format(a, "%s/%s", argv[i], e->d_name);
            fprintf(stderr, "%s\n", path);
            good = replay(path) && good;
            count++;
        }
        if (folder)
            closedir(folder);
    }
    printf("%u inputs\n", count);
    arena_free(a);
    return good && count ? EXIT_SUCCESS : EXIT_FAILURE;
}
