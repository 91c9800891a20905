/* cuFile (GPUDirect Storage): files read into device memory and written from it. */
#include "nullgpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CUFILE_OK = 0, CUFILE_INVALID_VALUE = 5022, CUFILE_INVALID_FILE_TYPE = 5013 };
enum { FILE_DESCRIPTOR = 1 };

struct cufile_status {
    int status;
    int driver_status;
};

struct cufile_file {
    int type;
    union {
        int descriptor;
        void *handle;
    } of;
    const void *operations;
};

/* Programs open with O_DIRECT, which takes aligned memory and lengths only; cuFile takes any, so the file is opened a
 * second time without it. */
static int open_again(int descriptor)
{
    char path[32];
    int flags = fcntl(descriptor, F_GETFL);

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return flags < 0 ? -1 : open(path, (flags & O_ACCMODE) | O_CLOEXEC);
}

NULLGPU_API struct cufile_status cuFileHandleRegister(int **handle, const struct cufile_file *file)
{
    if (file->type != FILE_DESCRIPTOR)
        return (struct cufile_status){CUFILE_INVALID_FILE_TYPE, 0};
    *handle = malloc(sizeof **handle);
    if (!*handle)
        return (struct cufile_status){CUFILE_INVALID_VALUE, 0};
    **handle = open_again(file->of.descriptor);
    if (**handle < 0) {
        free(*handle);
        return (struct cufile_status){CUFILE_INVALID_VALUE, 0};
    }
    return (struct cufile_status){CUFILE_OK, 0};
}

NULLGPU_API void cuFileHandleDeregister(int *handle)
{
    if (handle)
        close(*handle);
    free(handle);
}

/* Both directions go through a part of this size, which device memory can remember. */
#define PART_BYTES NULLGPU_UPLOAD_BYTES

typedef ssize_t copy_part(int file, char *device, char *part, size_t bytes, off_t at);

static ssize_t read_part(int file, char *device, char *part, size_t bytes, off_t at)
{
    ssize_t done = pread(file, part, bytes, at);

    if (done > 0)
        nullgpu_carry(device, part, (size_t)done);
    return done;
}

static ssize_t write_part(int file, char *device, char *part, size_t bytes, off_t at)
{
    nullgpu_carry(part, device, bytes);
    return pwrite(file, part, bytes, at);
}

static ssize_t copy(copy_part *one, int file, char *device, size_t bytes, off_t at)
{
    char *part = malloc(PART_BYTES);
    size_t done = 0;
    ssize_t last = 0;

    if (!part)
        return -1;
    while (done < bytes) {
        size_t wanted = bytes - done < PART_BYTES ? bytes - done : PART_BYTES;

        last = one(file, device + done, part, wanted, at + (off_t)done);
        if (last <= 0)
            break;
        done += (size_t)last;
    }
    free(part);
    return last < 0 && done == 0 ? -1 : (ssize_t)done;
}

NULLGPU_API ssize_t cuFileRead(const int *handle, char *base, size_t bytes, off_t at, off_t offset)
{
    return copy(read_part, *handle, base + offset, bytes, at);
}

NULLGPU_API ssize_t cuFileWrite(const int *handle, char *base, size_t bytes, off_t at, off_t offset)
{
    return copy(write_part, *handle, base + offset, bytes, at);
}
