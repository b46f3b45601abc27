/* Maps a file, or all parts of a split one, and joins their headers. Names are found by binary
 * search in sorted lists, so that no set of names makes look-ups slow. */
#if !defined _WIN32 && !defined _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#define _FILE_OFFSET_BITS 64 /* files above 2 GiB where long has 32 bits */

#include "gguf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

static const uint8_t NO_BYTES[1];

/* Maps the file at part->path unless it is empty. Returns NULL, or the problem. */
#ifdef _WIN32
static const char *map(gguf_part *part)
{
    LARGE_INTEGER size;
    HANDLE mapping;
    HANDLE file = CreateFileA(part->path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING,
                              FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return "cannot be opened";
    if (!GetFileSizeEx(file, &size)) {
        CloseHandle(file);
        return "has no size";
    }
    part->size = (uint64_t)size.QuadPart;
    mapping = part->size ? CreateFileMappingA(file, NULL, PAGE_READONLY, 0, 0, NULL) : NULL;
    if (mapping) {
        part->bytes = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
        part->is_mapped = part->bytes != NULL;
        CloseHandle(mapping);
    }
    CloseHandle(file);
    return part->size && !part->is_mapped ? "cannot be mapped" : NULL;
}

static void unmap(const gguf_part *part)
{
    UnmapViewOfFile(part->bytes);
}
#else
static const char *map(gguf_part *part)
{
    struct stat status;
    const char *problem = NULL;
    int descriptor =
        open(part->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: a FIFO must not
                                                                             block */
    if (descriptor < 0)
        return strerror(errno);
    if (fstat(descriptor, &status) != 0)
        problem = strerror(errno);
    else if (!S_ISREG(status.st_mode))
        problem = "is not a regular file";
    else if ((uint64_t)status.st_size > SIZE_MAX)
        problem = "is too large to map";
    part->size = problem ? 0 : (uint64_t)status.st_size;
    if (part->size) {
        void *bytes = mmap(NULL, (size_t)part->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        part->is_mapped = bytes != MAP_FAILED;
        if (part->is_mapped)
            part->bytes = bytes;
        else
            problem = strerror(errno);
    }
    close(descriptor);
    return problem;
}

static void unmap(const gguf_part *part)
{
    munmap((void *)part->bytes, (size_t)part->size);
}
#endif

static bool fail_at_file(gguf_error *error, const char *path, const char *problem)
{
    snprintf(error->message, sizeof error->message, "%s: %s", path, problem);
    return false;
}

static bool sort_tensors(gguf_file *file, gguf_error *error)
{
    const gguf_tensor **sorted = malloc((file->tensor_count + 1) * sizeof *sorted);
    file->tensors_by_name = sorted;
    if (!sorted)
        return fail_at_file(error, file->parts[0].path, "out of memory");
    for (size_t i = 0; i < file->tensor_count; i++)
        sorted[i] = &file->tensors[i];
    qsort(sorted, file->tensor_count, sizeof *sorted, gguf_by_name);
    for (size_t i = 1; i < file->tensor_count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return gguf_fail(error, file->parts[sorted[i]->part].path, sorted[i]->info_offset,
                             "duplicate tensor \"%s\"; the first is at byte %" PRIu64 " of %s",
                             sorted[i]->name, sorted[i - 1]->info_offset,
                             file->parts[sorted[i - 1]->part].path);
    return true;
}

/* Moves a part's header into the file and leaves the header empty. */
static bool join(gguf_file *file, gguf_part *part, gguf_header *header, gguf_error *error)
{
    size_t count = file->tensor_count + header->tensor_count;
    gguf_tensor *tensors = realloc((void *)file->tensors, (count + 1) * sizeof *tensors);
    if (!tensors)
        return fail_at_file(error, part->path, "out of memory");
    file->tensors = tensors;
    for (size_t i = 0; i < header->tensor_count; i++) {
        gguf_tensor *t = &tensors[file->tensor_count++];
        *t = header->tensors[i];
        t->part = (uint32_t)(part - file->parts);
    }
    part->data = header->data;
    part->names = header->names;
    header->names = NULL;
    if (part == file->parts) {
        file->version = header->version;
        file->alignment = header->alignment;
        file->keys = header->keys;
        file->key_count = header->key_count;
        file->keys_by_name = header->keys_by_name;
        header->keys = NULL;
        header->keys_by_name = NULL;
    }
    return true;
}

/* Checks that a part's split key has the value that the file's name implies. */
static bool check_split_key(const gguf_part *part, const gguf_header *header, const char *name,
                            uint64_t expected, gguf_error *error)
{
    uint64_t value;
    const gguf_key *key = gguf_find_by_name(header->keys_by_name, header->key_count, name);
    if (!key)
        return gguf_fail(error, part->path, 24, "this part of a split model lacks the key %s",
                         name);
    if (!gguf_get_u64(key, 0, &value))
        return gguf_fail(error, part->path, key->offset, "%s is not an unsigned integer", name);
    if (value != expected)
        return gguf_fail(error, part->path, key->offset, "%s = %" PRIu64 ", expected %" PRIu64,
                         name, value, expected);
    return true;
}

enum { SPLIT_DIGITS = 5 };

static const char SPLIT_NAME[] = "-00001-of-00009.gguf";
enum { SPLIT_OF = 6 }; /* end of the part number in SPLIT_NAME */

/* Returns the end of a path that has the form of SPLIT_NAME, or NULL. */
static char *find_split_name(char *path, uint64_t *count)
{
    char number[SPLIT_DIGITS + 1], of[SPLIT_DIGITS + 1];
    size_t length = strlen(path), name_length = sizeof SPLIT_NAME - 1;
    int end = 0;
    if (length < name_length)
        return NULL;
    char *name = path + length - name_length;
    if (sscanf(name, "-%5[0-9]-of-%5[0-9].gguf%n", number, of, &end) != 2 ||
        (size_t)end != name_length)
        return NULL;
    *count = strtoull(of, NULL, 10);
    unsigned long long index = strtoull(number, NULL, 10);
    return index >= 1 && index <= *count ? name : NULL;
}

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* Opens a part: bytes in memory, or a file to map if memory is NULL. */
static bool open_part(gguf_file *file, size_t index, const char *path, const gguf_part *memory,
                      gguf_error *error)
{
    gguf_part *part = &file->parts[index];
    gguf_header header;
    char problem[GGUF_MESSAGE_SIZE / 2];
    *part = memory ? *memory : (gguf_part){ .bytes = NO_BYTES };
    part->path = copy_text(path);
    if (!part->path)
        return fail_at_file(error, path, "out of memory");
    const char *unmapped = memory ? NULL : map(part);
    if (unmapped) {
        snprintf(problem, sizeof problem, "part %zu of %zu of the model: %s", index + 1,
                 file->part_count, unmapped);
        fail_at_file(error, path, file->part_count > 1 ? problem : unmapped);
        error->unreadable = true;
        return false;
    }
    bool good = gguf_parse(path, part->bytes, part->size, &header, error) &&
                (file->part_count == 1 ||
                 (check_split_key(part, &header, "split.count", file->part_count, error) &&
                  check_split_key(part, &header, "split.no", index, error))) &&
                join(file, part, &header, error);
    gguf_free_header(&header);
    return good;
}

/* Opens count files as parts of one model. split_name points to the part's number in path. */
static bool open_parts(const char *path, char *split_name, size_t count, const gguf_part *memory,
                       gguf_file *file, gguf_error *error)
{
    memset(file, 0, sizeof *file);
    file->parts = calloc(count, sizeof *file->parts);
    if (!file->parts)
        return fail_at_file(error, path, "out of memory");
    file->part_count = count;
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        if (split_name)
            for (size_t digit = 0, rest = i + 1; digit < SPLIT_DIGITS; digit++, rest /= 10)
                split_name[SPLIT_OF - 1 - digit] = (char)('0' + rest % 10);
        good = open_part(file, i, path, memory, error);
    }
    good = good && sort_tensors(file, error);
    uint64_t total;
    const gguf_key *key = good && count > 1 ? gguf_find_key(file, "split.tensors.count") : NULL;
    if (gguf_get_u64(key, 0, &total) && total != file->tensor_count)
        good = gguf_fail(error, file->parts[0].path, key->offset,
                         "split.tensors.count = %" PRIu64 ", but the parts have %zu tensors", total,
                         file->tensor_count);
    if (!good)
        gguf_close(file);
    return good;
}

/* Reads the number of parts that an opened file declares; 1 without split.count. */
static bool find_part_count(const gguf_file *file, uint64_t *count, gguf_error *error)
{
    const gguf_key *key = gguf_find_key(file, "split.count");
    *count = 1;
    if (key && !gguf_get_u64(key, 0, count))
        return gguf_fail(error, file->parts[0].path, key->offset,
                         "split.count is not an unsigned integer");
    return true;
}

bool gguf_open(const char *path, gguf_file *file, gguf_error *error)
{
    uint64_t count = 1, named;
    memset(file, 0, sizeof *file);
    error->unreadable = false;
    char *name = copy_text(path);
    if (!name)
        return fail_at_file(error, path, "out of memory");
    bool good =
        open_parts(name, NULL, 1, NULL, file, error) && find_part_count(file, &count, error);
    if (good && count > 1) {
        uint64_t at = gguf_find_key(file, "split.count")->offset;
        char *split_name = find_split_name(name, &named);
        gguf_close(file);
        if (!split_name)
            good = gguf_fail(error, path, at,
                             "split.count = %" PRIu64 ", but the file's name does not end like %s",
                             count, SPLIT_NAME);
        else if (named != count)
            good = gguf_fail(error, path, at,
                             "split.count = %" PRIu64 ", but the file's name says %" PRIu64, count,
                             named);
        else
            good = open_parts(name, split_name, (size_t)count, NULL, file, error);
    }
    if (!good)
        gguf_close(file);
    free(name);
    return good;
}

bool gguf_open_memory(const char *name, const void *bytes, size_t size, gguf_file *file,
                      gguf_error *error)
{
    uint64_t count;
    const gguf_part memory = { .bytes = size ? bytes : NO_BYTES, .size = size };
    bool good =
        open_parts(name, NULL, 1, &memory, file, error) && find_part_count(file, &count, error);
    if (good && count > 1)
        good = gguf_fail(error, name, gguf_find_key(file, "split.count")->offset,
                         "split.count = %" PRIu64 ": open a split model by path, not from memory",
                         count);
    if (!good)
        gguf_close(file);
    return good;
}

void gguf_close(gguf_file *file)
{
    for (size_t i = 0; i < file->part_count; i++) {
        gguf_part *part = &file->parts[i];
        if (part->is_mapped)
            unmap(part);
        free(part->path);
        free(part->names);
    }
    free(file->parts);
    free((void *)file->keys);
    free((void *)file->keys_by_name);
    free((void *)file->tensors);
    free((void *)file->tensors_by_name);
    memset(file, 0, sizeof *file);
}

const gguf_key *gguf_find_key(const gguf_file *file, const char *name)
{
    return gguf_find_by_name(file->keys_by_name, file->key_count, name);
}

const gguf_tensor *gguf_find(const gguf_file *file, const char *name)
{
    return gguf_find_by_name(file->tensors_by_name, file->tensor_count, name);
}

const void *gguf_data(const gguf_file *file, const gguf_tensor *tensor)
{
    const gguf_part *part = &file->parts[tensor->part];
    return tensor->offset + tensor->bytes <= part->size ? part->bytes + tensor->offset : NULL;
}

bool gguf_check_data(const gguf_file *file, gguf_error *error)
{
    for (size_t i = 0; i < file->tensor_count; i++) {
        const gguf_tensor *t = &file->tensors[i];
        const gguf_part *part = &file->parts[t->part];
        if (!gguf_data(file, t))
            return gguf_fail(
                error, part->path, part->size,
                "the file ends here, but the data of tensor \"%s\" are at bytes %" PRIu64
                " to %" PRIu64,
                t->name, t->offset, t->offset + t->bytes - 1);
    }
    return true;
}
