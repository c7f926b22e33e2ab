/* A program in C over the library: directories, data, links, names, errors. Prints nothing and returns 0 if all is right. */
#include "scalefs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                              \
    do {                                                              \
        if (!(condition)) {                                           \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);   \
            return 1;                                                 \
        }                                                             \
    } while (0)

static int count_names(const char *name, size_t length, uint64_t number, void *count) {
    (void)name;
    (void)number;
    *(int *)count += length > 0;
    return 1;
}

int main(void) {
    scalefs_instance *instance = scalefs_create(16u << 20, 64, 2, 1);
    CHECK(instance != NULL);
    CHECK(scalefs_create(1, 1, 2, 1) == NULL);
    scalefs_thread *thread = scalefs_attach(instance, 0);
    CHECK(thread != NULL && scalefs_attach(instance, 0) == NULL && scalefs_attach(instance, 2) == NULL);
    CHECK(scalefs_destroy(instance) == -EBUSY);
    scalefs_process *process = scalefs_process_new(thread, 0, 0);
    CHECK(scalefs_mkdir(thread, process, "/d", 0755) == 0);
    CHECK(scalefs_mkdir(thread, process, "/d", 0755) == -EEXIST);
    CHECK(scalefs_chdir(thread, process, "d") == 0);
    uint32_t flags = SCALEFS_READ | SCALEFS_WRITE | SCALEFS_CREATE;
    int fd = scalefs_open(thread, process, "file", flags, 0644);
    CHECK(fd == 0 && scalefs_open(thread, process, "file", 1u << 30, 0) == -EINVAL);
    char bytes[16] = "";
    CHECK(scalefs_write(thread, process, fd, "hello, world", 12) == 12);
    CHECK(scalefs_seek(thread, process, fd, 7, 0) == 7);
    CHECK(scalefs_read(thread, process, fd, bytes, sizeof bytes) == 5 && memcmp(bytes, "world", 5) == 0);
    CHECK(scalefs_pwrite(thread, process, fd, "H", 1, 0) == 1 && scalefs_pread(thread, process, fd, bytes, 1, 0) == 1);
    CHECK(bytes[0] == 'H' && scalefs_truncate(thread, process, fd, 4096) == 0);
    scalefs_status status = {.struct_size = sizeof status};
    CHECK(scalefs_link(thread, process, "file", "link") == 0);
    CHECK(scalefs_fstatx(thread, process, fd, SCALEFS_ALL, &status) == 0);
    CHECK(status.link_count == 2 && status.size_bytes == 4096 && status.mode == 0100644 && status.modified_ns > 0);
    CHECK(scalefs_read(thread, process, fd, NULL, 1) == -EINVAL && scalefs_read(thread, process, fd, NULL, 0) == 0);
    CHECK(scalefs_read(thread, process, fd, bytes, (size_t)-1) == -EINVAL);
    CHECK(scalefs_pwrite(thread, process, fd, bytes, (size_t)PTRDIFF_MAX + 1, 0) == -EINVAL);
    CHECK(scalefs_open(thread, process, NULL, flags, 0) == -EINVAL && scalefs_mkdir(thread, process, NULL, 0) == -EINVAL);
    CHECK(scalefs_link(thread, process, "file", NULL) == -EINVAL && scalefs_link(thread, process, NULL, "x") == -EINVAL);
    CHECK(scalefs_stat(thread, process, "file", 1, SCALEFS_ALL, NULL) == -EINVAL);
    CHECK(scalefs_fstatx(thread, process, fd, SCALEFS_ALL, NULL) == -EINVAL);
    CHECK(scalefs_list(thread, process, ".", NULL, count_names, NULL) == -EINVAL);
    CHECK(scalefs_close(thread, process, fd) == 0 && scalefs_close(thread, process, fd) == -EBADF);
    CHECK(scalefs_symlink(thread, process, "file", "symlink") == 0);
    CHECK(scalefs_readlink(thread, process, "symlink", bytes, 3) == 3 && memcmp(bytes, "fil", 3) == 0);
    CHECK(scalefs_stat(thread, process, "symlink", 1, SCALEFS_SIZE, &status) == 0 && status.size_bytes == 4096);
    CHECK(scalefs_stat(thread, process, "symlink", 0, SCALEFS_SIZE, &status) == 0 && status.size_bytes == 4);
    CHECK(scalefs_rename(thread, process, "file", "link", SCALEFS_NO_REPLACE) == -EEXIST);
    CHECK(scalefs_rename(thread, process, "/d/link", "/moved", SCALEFS_REPLACE) == 0);
    CHECK(scalefs_chmod(thread, process, "/moved", 0600) == 0 && scalefs_access(thread, process, "/moved", 1) == -EACCES);
    int names = 0;
    uint64_t cookie = 0;
    CHECK(scalefs_list(thread, process, ".", &cookie, count_names, &names) == 0 && names == 4);
    /* From the end on there are none, for who looks at the cookie alone. */
    CHECK(scalefs_list(thread, process, ".", &cookie, count_names, &names) == 0 && names == 4 && cookie != 0);
    CHECK(scalefs_rmdir(thread, process, "/d") == -ENOTEMPTY);
    CHECK(scalefs_unlink(thread, process, "file") == 0 && scalefs_unlink(thread, process, "symlink") == 0);
    CHECK(scalefs_rmdir(thread, process, "/d") == 0);
    scalefs_process_exit(thread, process);
    scalefs_maintain(thread);
    scalefs_detach(thread);
    CHECK(scalefs_destroy(instance) == 0);
    return 0;
}
