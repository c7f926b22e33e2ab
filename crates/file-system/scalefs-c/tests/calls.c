/* Calls from an open directory, on descriptors, and on several buffers. Prints nothing and returns 0 if all is right. */
#include "scalefs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                              \
    do {                                                              \
        if (!(condition)) {                                           \
            fprintf(stderr, "line %d: %s; reason: %s\n", __LINE__, #condition, scalefs_reason()); \
            return 1;                                                 \
        }                                                             \
    } while (0)

int main(void) {
    scalefs_instance *instance = scalefs_create(16u << 20, 64, 2, 1);
    scalefs_thread *me = scalefs_attach(instance, 0);
    scalefs_process *us = scalefs_process_new(me, 0, 0);
    CHECK(us != NULL && scalefs_version() == SCALEFS_VERSION);
    scalefs_status status = {.struct_size = sizeof status};
    uint32_t flags = SCALEFS_READ | SCALEFS_WRITE | SCALEFS_CREATE;

    CHECK(scalefs_mkdirat(me, us, SCALEFS_AT_CWD, "d", 0755) == 0);
    int d = scalefs_open(me, us, "d", SCALEFS_READ | SCALEFS_DIRECTORY, 0);
    int fd = scalefs_openat(me, us, d, "file", flags, 0644);
    CHECK(d == 0 && fd == 1 && scalefs_stat(me, us, "/d/file", 1, SCALEFS_ALL, &status) == 0 && status.link_count == 1);
    CHECK(scalefs_openat(me, us, fd, "x", flags, 0644) == -ENOTDIR && scalefs_openat(me, us, 77, "x", flags, 0) == -EBADF);
    CHECK(scalefs_linkat(me, us, d, "file", d, "link", 0) == 0 && scalefs_symlinkat(me, us, "file", d, "symlink") == 0);
    char text[16] = "";
    CHECK(scalefs_readlinkat(me, us, d, "symlink", text, sizeof text) == 4 && memcmp(text, "file", 4) == 0);
    CHECK(scalefs_statat(me, us, d, "symlink", 1, SCALEFS_LINK_COUNT, &status) == 0 && status.link_count == 2);
    CHECK(scalefs_renameat(me, us, d, "link", SCALEFS_AT_CWD, "moved", SCALEFS_NO_REPLACE) == 0);
    CHECK(scalefs_unlinkat(me, us, SCALEFS_AT_CWD, "d", 0) == -EISDIR);
    CHECK(scalefs_unlinkat(me, us, SCALEFS_AT_CWD, "moved", 0) == 0 && scalefs_unlinkat(me, us, d, "file", 8) == -EINVAL);
    CHECK(scalefs_unlinkat(me, us, SCALEFS_AT_CWD, "d", SCALEFS_REMOVE_DIRECTORY) == -ENOTEMPTY);
    CHECK(scalefs_chmodat(me, us, d, "file", 0640) == 0 && scalefs_chownat(me, us, d, "file", 1, 5, SCALEFS_SAME_ID) == 0);
    CHECK(scalefs_utimensat(me, us, d, "file", 1, 7, 9, SCALEFS_SET_ACCESSED | SCALEFS_SET_MODIFIED) == 0);
    CHECK(scalefs_fstatx(me, us, fd, SCALEFS_ALL, &status) == 0 && status.user == 5 && status.group == 0);
    CHECK(status.accessed_ns == 7 && status.modified_ns == 9 && (status.mode & 0777) == 0640);
    CHECK(scalefs_utimensat(me, us, d, "file", 1, 0, 0, SCALEFS_MODIFIED_NOW) == 0);
    CHECK(scalefs_fstatx(me, us, fd, SCALEFS_ALL, &status) == 0 && status.accessed_ns == 7 && status.modified_ns > 9);
    CHECK(scalefs_accessat(me, us, d, "file", 1, 4) == 0 && scalefs_accessat(me, us, d, "file", 1, 1) == -EACCES);

    scalefs_buffer parts[3] = {{"Dear ", 5}, {NULL, 0}, {"Bob", 3}};
    CHECK(scalefs_writev(me, us, fd, parts, 3) == 8 && scalefs_pwritev(me, us, fd, parts, 1, 8) == 5);
    char first[3], second[8] = "";
    scalefs_buffer places[2] = {{first, 3}, {second, 8}};
    CHECK(scalefs_preadv(me, us, fd, places, 2, 0) == 11 && memcmp(first, "Dea", 3) == 0 && memcmp(second, "r BobDea", 8) == 0);
    CHECK(scalefs_seek(me, us, fd, 5, 0) == 5 && scalefs_readv(me, us, fd, places, 2) == 8 && memcmp(first, "Bob", 3) == 0);
    CHECK(scalefs_readv(me, us, fd, places, -1) == -EINVAL && scalefs_readv(me, us, fd, NULL, 1) == -EINVAL);
    scalefs_buffer large[2] = {{first, SIZE_MAX / 2}, {second, SIZE_MAX / 2}};
    CHECK(scalefs_readv(me, us, fd, large, 2) == -EINVAL && scalefs_writev(me, us, fd, large, 2) == -EINVAL);

    int other = scalefs_dup(me, us, fd);
    CHECK(other == 2 && scalefs_dup2(me, us, fd, 9) == 9 && scalefs_seek(me, us, 9, 0, 1) == 13);
    CHECK(scalefs_fcntl(me, us, fd, SCALEFS_DUPLICATE, 20) == 20 && scalefs_fcntl(me, us, fd, 99, 0) == -EINVAL);
    CHECK(scalefs_fcntl(me, us, fd, SCALEFS_GET_FLAGS, 0) == (SCALEFS_READ | SCALEFS_WRITE));
    CHECK(scalefs_fcntl(me, us, fd, SCALEFS_SET_FLAGS, SCALEFS_APPEND) == 0);
    CHECK(scalefs_fcntl(me, us, 9, SCALEFS_GET_FLAGS, 0) == (SCALEFS_READ | SCALEFS_WRITE | SCALEFS_APPEND));
    CHECK(scalefs_fcntl(me, us, fd, SCALEFS_SET_FLAGS, 1u << 20) == -EINVAL);
    CHECK(scalefs_fcntl(me, us, fd, SCALEFS_SET_ON_EXEC, 1) == 0 && scalefs_fcntl(me, us, 77, SCALEFS_SET_ON_EXEC, 1) == -EBADF);

    scalefs_lock lock = {.kind = SCALEFS_OF_DESCRIPTION, .mode = SCALEFS_EXCLUSIVE_LOCK, .start = 2, .length = 5};
    CHECK(scalefs_set_lock(me, us, fd, &lock, 0) == 0 && scalefs_set_lock(me, us, fd, &lock, 2) == -EINVAL);
    lock.kind = SCALEFS_OF_PROCESS;
    CHECK(scalefs_set_lock(me, us, fd, &lock, 0) == -EAGAIN && scalefs_set_lock(me, us, 77, &lock, 0) == -EBADF);
    CHECK(scalefs_get_lock(me, us, fd, &lock) == 0 && lock.kind == SCALEFS_OF_DESCRIPTION && lock.has_process == 0);
    CHECK(lock.mode == SCALEFS_EXCLUSIVE_LOCK && lock.start == 2 && lock.length == 5 && lock.whence == 0);
    lock.start = 7;
    CHECK(scalefs_get_lock(me, us, fd, &lock) == 0 && lock.mode == SCALEFS_UNLOCKED && lock.start == 7);
    CHECK(scalefs_get_lock(me, us, fd, &lock) == -EINVAL && scalefs_get_lock(me, us, fd, NULL) == -EINVAL);
    CHECK(scalefs_set_lock(me, us, fd, NULL, 0) == -EINVAL && scalefs_flock(me, us, fd, 3, 0) == -EINVAL);
    int apart = scalefs_open(me, us, "d/file", SCALEFS_READ, 0);
    CHECK(scalefs_flock(me, us, fd, SCALEFS_EXCLUSIVE_LOCK, SCALEFS_WAIT) == 0);
    CHECK(scalefs_flock(me, us, apart, SCALEFS_SHARED_LOCK, 0) == -EAGAIN);
    CHECK(scalefs_flock(me, us, fd, SCALEFS_UNLOCKED, 0) == 0 && scalefs_flock(me, us, apart, SCALEFS_SHARED_LOCK, 0) == 0);
    lock.mode = SCALEFS_EXCLUSIVE_LOCK;
    CHECK(scalefs_set_lock(me, us, apart, &lock, 0) == -EBADF && scalefs_xbegin(me, us, 0) == 0);
    CHECK(scalefs_flock(me, us, fd, SCALEFS_UNLOCKED, 0) == -EOPNOTSUPP && scalefs_xabort(me, us) == 0);
    CHECK(scalefs_close(me, us, apart) == 0);

    char value[8];
    const char *about = "user.about";
    CHECK(scalefs_setxattrat(me, us, SCALEFS_AT_CWD, "d/file", 1, about, "tree", 4, SCALEFS_MUST_BE_NEW) == 0);
    CHECK(scalefs_setxattrat(me, us, fd, NULL, SCALEFS_EMPTY_PATH, about, "x", 1, SCALEFS_MUST_BE_NEW) == -EEXIST);
    CHECK(scalefs_getxattrat(me, us, fd, NULL, SCALEFS_EMPTY_PATH, about, NULL, 0) == 4);
    CHECK(scalefs_getxattrat(me, us, fd, NULL, SCALEFS_EMPTY_PATH, about, value, 3) == -ERANGE);
    CHECK(scalefs_getxattrat(me, us, fd, NULL, SCALEFS_EMPTY_PATH, about, value, 8) == 4 && memcmp(value, "tree", 4) == 0);
    CHECK(scalefs_getxattrat(me, us, fd, NULL, SCALEFS_EMPTY_PATH, NULL, value, 8) == -EINVAL);
    CHECK(scalefs_getxattrat(me, us, fd, "", 1, about, value, 8) == -ENOENT);
    CHECK(scalefs_listxattrat(me, us, SCALEFS_AT_CWD, "d/file", 0, NULL, 0) == 11);
    CHECK(scalefs_setxattrat(me, us, SCALEFS_AT_CWD, "d/file", 1, "other.a", "x", 1, 0) == -EOPNOTSUPP);
    CHECK(scalefs_removexattrat(me, us, SCALEFS_AT_CWD, "d/file", 1, about) == 0);
    CHECK(scalefs_removexattrat(me, us, SCALEFS_AT_CWD, "d/file", 1, about) == -ENODATA);
    CHECK(scalefs_fallocate(me, us, fd, 0, 0, 9000) == 0 && scalefs_fallocate(me, us, fd, 0, 0, 1 << 30) == -ENOSPC);
    CHECK(scalefs_fallocate(me, us, fd, SCALEFS_PUNCH_HOLE, 0, 1) == -EOPNOTSUPP);
    CHECK(scalefs_occupied(me, us, fd) == 3 * 4096);
    CHECK(scalefs_fallocate(me, us, fd, SCALEFS_KEEP_SIZE | SCALEFS_PUNCH_HOLE, 0, 9000) == 0);
    /* The last page has bytes behind those. */
    CHECK(scalefs_occupied(me, us, fd) == 4096 && scalefs_occupied(me, us, 77) == -EBADF);
    CHECK(scalefs_xbegin(me, us, 0) == 0 && scalefs_fallocate(me, us, fd, 0, 0, 1) == -EOPNOTSUPP);
    CHECK(scalefs_getxattrat(me, us, fd, NULL, SCALEFS_EMPTY_PATH, about, NULL, 0) == -EOPNOTSUPP);
    CHECK(scalefs_xabort(me, us) == 0);

    int ends[2];
    CHECK(scalefs_pipe(me, us, ends, SCALEFS_NONBLOCK) == 0 && scalefs_read(me, us, ends[0], text, 1) == -EAGAIN);
    CHECK(scalefs_write(me, us, ends[1], "x", 1) == 1 && scalefs_read(me, us, ends[0], text, 1) == 1 && text[0] == 'x');
    CHECK(scalefs_pipe(me, us, ends, SCALEFS_APPEND) == -EINVAL && scalefs_pipe(me, us, NULL, 0) == -EINVAL);

    scalefs_space space = {.struct_size = sizeof space};
    CHECK(scalefs_statvfs(me, us, &space) == 0 && space.block_bytes == 4096 && space.blocks == 64);
    CHECK(space.free_blocks < space.blocks && space.free_inodes < space.inodes);
    scalefs_process_exit(me, us);
    scalefs_detach(me);
    CHECK(scalefs_destroy(instance) == 0);
    return 0;
}
