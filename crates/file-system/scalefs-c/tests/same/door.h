/* The calls that `same.c` makes, by ScaleFS or, with ON_HOST, by the host's own: by one name, with one answer, which is what
 * POSIX returns or a negative error number. */
#ifndef DOOR_H
#define DOOR_H

#define _GNU_SOURCE
#include "scalefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CWD SCALEFS_AT_CWD
#define READ SCALEFS_READ
#define WRITE SCALEFS_WRITE
#define CREATE SCALEFS_CREATE
#define EXCLUSIVE SCALEFS_EXCLUSIVE
#define TRUNCATE SCALEFS_TRUNCATE
#define DIRECTORY SCALEFS_DIRECTORY
#define NO_FOLLOW SCALEFS_NO_FOLLOW
#define APPEND SCALEFS_APPEND
#define NONBLOCK SCALEFS_NONBLOCK
#define CLOSE_ON_EXEC SCALEFS_CLOSE_ON_EXEC
#define HANDLE SCALEFS_HANDLE
#define TEMPORARY SCALEFS_TEMPORARY

/* Prints a call and what it answered. */
#define SAY(call) printf("%d %s = %ld\n", __LINE__, #call, (long)(call))

static char text[8192];

#ifdef ON_HOST
static int scratch[2];
static char top[4096];

static long told(long answer) { return answer < 0 ? -errno : answer; }

static int of_open(uint32_t flags) {
    int made = (flags & 3) == 3 ? O_RDWR : (flags & WRITE) ? O_WRONLY : O_RDONLY;
    made |= (flags & CREATE ? O_CREAT : 0) | (flags & EXCLUSIVE ? O_EXCL : 0) | (flags & TRUNCATE ? O_TRUNC : 0);
    made |= (flags & DIRECTORY ? O_DIRECTORY : 0) | (flags & NO_FOLLOW ? O_NOFOLLOW : 0);
    made |= (flags & APPEND ? O_APPEND : 0) | (flags & NONBLOCK ? O_NONBLOCK : 0);
    made |= (flags & HANDLE ? O_PATH : 0) | (flags & TEMPORARY ? O_TMPFILE : 0);
    return made | (flags & CLOSE_ON_EXEC ? O_CLOEXEC : 0);
}

static int begin(const char *folder) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (chdir(folder) != 0 || getcwd(top, sizeof top) == NULL || pipe(scratch) != 0) return 0;
    for (int end = 0; end < 2; end++) {
        int moved = fcntl(scratch[end], F_DUPFD, 900);
        close(scratch[end]);
        scratch[end] = moved;
    }
    umask(022);
    return 1;
}
static void end(void) {}

static long d_open(int at, const char *path, uint32_t flags, uint32_t mode) {
    return told(openat(at, path, of_open(flags), mode));
}
static long d_close(int fd) { return told(close(fd)); }
static long d_read(int fd, size_t size) { memset(text, 0, sizeof text); return told(read(fd, text, size)); }
static long d_write(int fd, const char *bytes) { return told(write(fd, bytes, strlen(bytes))); }
static long d_pwrite(int fd, const char *bytes, long at) { return told(pwrite(fd, bytes, strlen(bytes), at)); }
static long d_seek(int fd, long offset, int whence) { return told(lseek(fd, offset, whence)); }
static long d_ftruncate(int fd, long size) { return told(ftruncate(fd, size)); }
static long d_truncate(int at, const char *path, long size) { (void)at; return told(truncate(path, size)); }
static long d_mkdir(const char *path, uint32_t mode) { return told(mkdir(path, mode)); }
static long d_mknod(const char *path, uint32_t mode, uint64_t device) { return told(mknodat(AT_FDCWD, path, mode, device)); }
static long d_link(const char *old, const char *path) { return told(link(old, path)); }
static long d_link_object(int fd, const char *path) { return told(linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH)); }
static long d_own_object(int fd, uint32_t user, uint32_t group) { return told(fchownat(fd, "", user, group, AT_EMPTY_PATH)); }
static long d_readlink(int at, const char *path) { memset(text, 0, sizeof text); return told(readlinkat(at, path, text, 1000)); }
static long d_rename(const char *old, const char *path) { return told(rename(old, path)); }
static long d_rmdir(const char *path) { return told(rmdir(path)); }
static long d_unlink(const char *path) { return told(unlink(path)); }
static long d_symlink(const char *target, const char *path) { return told(symlink(target, path)); }
static long d_chmod(const char *path, uint32_t mode) { return told(chmod(path, mode)); }
static long d_fchmod(int fd, uint32_t mode) { return told(fchmod(fd, mode)); }
static long d_fchown(int fd, uint32_t user, uint32_t group) { return told(fchown(fd, user, group)); }
static long d_chown(const char *path, uint32_t user, uint32_t group) { return told(chown(path, user, group)); }
static long d_fchdir(int fd) { return told(fchdir(fd)); }
static long d_chdir(const char *path) { return told(chdir(path)); }
static long d_umask(uint32_t mask) { return umask(mask); }
static long d_access(const char *path, uint32_t wanted) { return told(faccessat(AT_FDCWD, path, wanted, AT_EACCESS)); }
static struct timespec time_of(int64_t ns, uint32_t which, uint32_t set, uint32_t now) {
    struct timespec omitted = {0, UTIME_OMIT}, present = {0, UTIME_NOW}, given = {ns / 1000000000, ns % 1000000000};
    return which & set ? given : which & now ? present : omitted;
}
static long d_futimens(int fd, int64_t accessed, int64_t modified, uint32_t which) {
    struct timespec times[2] = {time_of(accessed, which, 1, 4), time_of(modified, which, 2, 8)};
    return told(futimens(fd, times));
}
static long d_getcwd(size_t size) {
    /* What the folder of the test adds is taken off. */
    char path[8192];
    long length = told(syscall(SYS_getcwd, path, sizeof path));
    if (length < 0) return length;
    const char *below = strlen(path) > strlen(top) ? path + strlen(top) : "/";
    if (size < strlen(below) + 1) return -ERANGE;
    strcpy(text, below);
    return strlen(below) + 1;
}
struct found { long answer; unsigned mode, user, group, links; long size, accessed, modified; unsigned long device; };
static struct found of_stat(long answer, struct stat *status) {
    struct found found = {.answer = told(answer)};
    if (answer != 0) return found;
    found = (struct found){0, status->st_mode, status->st_uid, status->st_gid, status->st_nlink, status->st_size,
                           status->st_atim.tv_sec * 1000000000 + status->st_atim.tv_nsec,
                           status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec, status->st_rdev};
    return found;
}
static struct found d_stat(const char *path, int follow) {
    struct stat status;
    return of_stat(fstatat(AT_FDCWD, path, &status, follow ? 0 : AT_SYMLINK_NOFOLLOW), &status);
}
static struct found d_fstat(int fd) {
    struct stat status;
    return of_stat(fstat(fd, &status), &status);
}
static long d_getdents(int fd, void *into, size_t size) { return told(syscall(SYS_getdents64, fd, into, size)); }
static long d_dup(int fd) { return told(dup(fd)); }
static long d_dup2(int fd, int target) { return told(dup2(fd, target)); }
static long d_dup3(int fd, int target, uint32_t flags) { return told(dup3(fd, target, of_open(flags))); }
static long d_fcntl(int fd, uint32_t command, uint32_t argument) {
    const int commands[] = {F_GETFL, F_SETFL, F_DUPFD, F_SETFD, F_GETFD, F_DUPFD_CLOEXEC};
    if (command != SCALEFS_GET_FLAGS) {
        int is_flags = command == SCALEFS_SET_FLAGS;
        return told(fcntl(fd, commands[command], is_flags ? of_open(argument) : (int)argument));
    }
    long flags = told(fcntl(fd, F_GETFL));
    if (flags < 0) return flags;
    if (flags & O_PATH) return HANDLE;
    const uint32_t modes[] = {READ, WRITE, READ | WRITE};
    return modes[flags & O_ACCMODE] | (flags & O_APPEND ? APPEND : 0) | (flags & O_NONBLOCK ? NONBLOCK : 0);
}
static long d_pipe(int *ends, uint32_t flags) { return told(pipe2(ends, of_open(flags) & ~O_ACCMODE)); }
static long d_poll(int fd, uint32_t wanted, int timeout_ms) {
    struct pollfd entry = {fd, wanted, 0};
    long ready = told(poll(&entry, 1, timeout_ms));
    return ready < 0 ? ready : ready * 1000 + entry.revents;
}
static long d_socketpair(int *both) { return told(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, both)); }
static long d_socket(void) { return told(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)); }
static socklen_t address(struct sockaddr_un *made, const char *name) {
    /* Names of the host are for all its programs. */
    made->sun_family = AF_UNIX;
    made->sun_path[0] = 0;
    return offsetof(struct sockaddr_un, sun_path) + 1 + sprintf(made->sun_path + 1, "%08d%s", (int)getppid(), name);
}
static long name_told(struct sockaddr_un *found, socklen_t size) {
    long length = (long)size - (long)offsetof(struct sockaddr_un, sun_path) - 9;
    snprintf(text + 4096, 200, "%.*s", length > 0 ? (int)length : 0, found->sun_path + 9);
    return length > 0 ? length : 0;
}
static long d_bind(int fd, const char *name) {
    struct sockaddr_un made;
    socklen_t size = address(&made, name);
    return told(bind(fd, (struct sockaddr *)&made, size));
}
static long d_getsockname(int fd) {
    struct sockaddr_un found;
    socklen_t size = sizeof found;
    long answer = told(getsockname(fd, (struct sockaddr *)&found, &size));
    return answer < 0 ? answer : name_told(&found, size);
}
static long d_sendto(int fd, const char *bytes, const char *name) {
    struct sockaddr_un made;
    if (name == NULL) return told(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL));
    socklen_t size = address(&made, name);
    return told(sendto(fd, bytes, strlen(bytes), MSG_NOSIGNAL, (struct sockaddr *)&made, size));
}
static long d_recvfrom(int fd, size_t size) {
    struct sockaddr_un found;
    socklen_t name_size = sizeof found;
    memset(text, 0, sizeof text);
    long answer = told(recvfrom(fd, text, size, 0, (struct sockaddr *)&found, &name_size));
    if (answer >= 0) name_told(&found, name_size);
    return answer;
}
static long at_base;
static long d_mmap(uint64_t size, uint32_t access, uint32_t flags, int fd, long offset) {
    int kind = flags & SCALEFS_MAP_SHARED ? MAP_SHARED : MAP_PRIVATE;
    int host = (access & READ ? PROT_READ : 0) | (access & WRITE ? PROT_WRITE : 0);
    void *found = mmap(NULL, size, host, kind | (flags & SCALEFS_MAP_ANONYMOUS ? MAP_ANONYMOUS : 0), fd, offset);
    if (found == MAP_FAILED) return -errno;
    at_base = (long)found;
    return 0;
}
static long d_munmap(long at, uint64_t size) { return told(munmap((void *)(at_base + at), size)); }
static long d_mprotect(long at, uint64_t size, uint32_t access) {
    return told(mprotect((void *)(at_base + at), size, (access & READ ? PROT_READ : 0) | (access & WRITE ? PROT_WRITE : 0)));
}
static long d_mremap(long at, uint64_t old_size, uint64_t size) {
    void *found = mremap((void *)(at_base + at), old_size, size, MREMAP_MAYMOVE);
    if (found == MAP_FAILED) return -errno;
    at_base = (long)found;
    return 0;
}
static long d_discard(long at, uint64_t size) { return told(madvise((void *)(at_base + at), size, MADV_DONTNEED)); }
static long d_msync(long at, uint64_t size) { return told(msync((void *)(at_base + at), size, MS_SYNC)); }
/* A pipe's calls refuse what an instruction would get a signal for. */
static long d_load(long at, size_t size) {
    long answer = told(write(scratch[1], (void *)(at_base + at), size));
    if (answer < 0) return answer;
    memset(text, 0, sizeof text);
    return read(scratch[0], text, size) == (long)size ? 0 : -1;
}
static long d_store(long at, const char *bytes) {
    if (write(scratch[1], bytes, strlen(bytes)) != (long)strlen(bytes)) return -1;
    long answer = told(read(scratch[0], (void *)(at_base + at), strlen(bytes)));
    if (answer == -EFAULT) answer = read(scratch[0], text, sizeof text) > 0 ? -EFAULT : -1;
    return answer < 0 ? answer : 0;
}
/* Runs what follows as a child, up to END_CHILD, which says how that ended. */
#define CHILD { fflush(stdout); pid_t child_ = fork(); if (child_ == 0) {
#define CHILD_AS(user, group, count, groups) { fflush(stdout); pid_t child_ = fork(); if (child_ == 0) { \
    if (setgroups(count, groups) != 0 || setresgid(group, group, group) != 0 || setresuid(user, user, user) != 0) _exit(99);
#define END_CHILD(status) _exit(status); } int ended_ = -1; waitpid(child_, &ended_, 0); printf("%d child ended %d\n", __LINE__, ended_); \
    SAY(waitpid(-1, NULL, WNOHANG) < 0 ? -errno : 0); }

#else
static scalefs_instance *instance;
static scalefs_thread *me;
static scalefs_process *us;

static int begin(const char *folder) {
    (void)folder;
    instance = scalefs_create_mappable(32u << 20, 2048, 1, 1);
    me = scalefs_attach(instance, 0);
    scalefs_process *root = scalefs_process_new(me, 0, 0);
    scalefs_chmod(me, root, "/", 0777);
    gid_t groups[32];
    uint32_t count = (uint32_t)getgroups(32, groups);
    scalefs_credentials who = {geteuid(), getegid(), count, groups};
    us = scalefs_process_new_as(me, &who);
    /* The folder of the test is its maker's, who has numbers 0 to 2 open. */
    scalefs_chownat(me, root, CWD, "/", 1, who.user, who.group);
    scalefs_chmod(me, root, "/", 0755);
    for (int number = 0; number < 3; number++) scalefs_open(me, us, "/", READ, 0);
    return us != NULL;
}
static void end(void) {
    scalefs_process_exit(me, us);
    scalefs_detach(me);
    if (scalefs_destroy(instance) != 0) printf("not destroyed: %s\n", scalefs_reason());
}
static long d_open(int at, const char *path, uint32_t flags, uint32_t mode) {
    return scalefs_openat(me, us, at, path, flags, mode);
}
static long d_close(int fd) { return scalefs_close(me, us, fd); }
static long d_read(int fd, size_t size) { memset(text, 0, sizeof text); return scalefs_read(me, us, fd, text, size); }
static long d_write(int fd, const char *bytes) { return scalefs_write(me, us, fd, bytes, strlen(bytes)); }
static long d_pwrite(int fd, const char *bytes, long at) { return scalefs_pwrite(me, us, fd, bytes, strlen(bytes), at); }
static long d_seek(int fd, long offset, int whence) { return scalefs_seek(me, us, fd, offset, whence); }
static long d_ftruncate(int fd, long size) { return scalefs_truncate(me, us, fd, size); }
static long d_truncate(int at, const char *path, long size) { return scalefs_truncateat(me, us, at, path, size); }
static long d_mkdir(const char *path, uint32_t mode) { return scalefs_mkdir(me, us, path, mode); }
static long d_mknod(const char *path, uint32_t mode, uint64_t device) { return scalefs_mknodat(me, us, CWD, path, mode, device); }
static long d_link(const char *old, const char *path) { return scalefs_link(me, us, old, path); }
static long d_link_object(int fd, const char *path) { return scalefs_linkat(me, us, fd, NULL, CWD, path, SCALEFS_EMPTY_PATH); }
static long d_own_object(int fd, uint32_t user, uint32_t group) {
    return scalefs_chownat(me, us, fd, NULL, SCALEFS_EMPTY_PATH, user, group);
}
static long d_readlink(int at, const char *path) {
    memset(text, 0, sizeof text);
    return scalefs_readlinkat(me, us, at, path, text, 1000);
}
static long d_rename(const char *old, const char *path) { return scalefs_rename(me, us, old, path, SCALEFS_REPLACE); }
static long d_rmdir(const char *path) { return scalefs_rmdir(me, us, path); }
static long d_unlink(const char *path) { return scalefs_unlink(me, us, path); }
static long d_symlink(const char *target, const char *path) { return scalefs_symlink(me, us, target, path); }
static long d_chmod(const char *path, uint32_t mode) { return scalefs_chmod(me, us, path, mode); }
static long d_fchmod(int fd, uint32_t mode) { return scalefs_fchmod(me, us, fd, mode); }
static long d_fchown(int fd, uint32_t user, uint32_t group) { return scalefs_fchown(me, us, fd, user, group); }
static long d_chown(const char *path, uint32_t user, uint32_t group) {
    return scalefs_chownat(me, us, CWD, path, 1, user, group);
}
static long d_fchdir(int fd) { return scalefs_fchdir(me, us, fd); }
static long d_chdir(const char *path) { return scalefs_chdir(me, us, path); }
static long d_umask(uint32_t mask) { return scalefs_umask(me, us, mask); }
static long d_access(const char *path, uint32_t wanted) { return scalefs_access(me, us, path, wanted); }
static long d_futimens(int fd, int64_t accessed, int64_t modified, uint32_t which) {
    return scalefs_futimens(me, us, fd, accessed, modified, which);
}
static long d_getcwd(size_t size) { return scalefs_getcwd(me, us, text, size); }
struct found { long answer; unsigned mode, user, group, links; long size, accessed, modified; unsigned long device; };
static struct found of_status(long answer, scalefs_status *status) {
    struct found found = {.answer = answer};
    if (answer != 0) return found;
    found = (struct found){0, status->mode, status->user, status->group, status->link_count, (long)status->size_bytes,
                           status->accessed_ns, status->modified_ns, status->device};
    return found;
}
static struct found d_stat(const char *path, int follow) {
    scalefs_status status = {.struct_size = sizeof status};
    return of_status(scalefs_stat(me, us, path, follow, SCALEFS_ALL, &status), &status);
}
static struct found d_fstat(int fd) {
    scalefs_status status = {.struct_size = sizeof status};
    return of_status(scalefs_fstatx(me, us, fd, SCALEFS_ALL, &status), &status);
}
static long d_getdents(int fd, void *into, size_t size) { return scalefs_getdents(me, us, fd, into, size); }
static long d_dup(int fd) { return scalefs_dup(me, us, fd); }
static long d_dup2(int fd, int target) { return scalefs_dup2(me, us, fd, target); }
static long d_dup3(int fd, int target, uint32_t flags) { return scalefs_dup3(me, us, fd, target, flags); }
static long d_fcntl(int fd, uint32_t command, uint32_t argument) { return scalefs_fcntl(me, us, fd, command, argument); }
static long d_pipe(int *ends, uint32_t flags) { return scalefs_pipe(me, us, ends, flags); }
static long d_poll(int fd, uint32_t wanted, int timeout_ms) {
    scalefs_poll_entry entry = {fd, wanted, 0};
    long ready = scalefs_poll(me, us, &entry, 1, timeout_ms);
    return ready < 0 ? ready : ready * 1000 + entry.found;
}
static long d_socketpair(int *both) { return scalefs_socketpair(me, us, both, NONBLOCK); }
static long d_socket(void) { return scalefs_socket(me, us, NONBLOCK); }
static long d_bind(int fd, const char *name) { return scalefs_bind(me, us, fd, name, strlen(name)); }
static long d_getsockname(int fd) {
    memset(text + 4096, 0, 200);
    return scalefs_getsockname(me, us, fd, text + 4096, 200);
}
static long d_sendto(int fd, const char *bytes, const char *name) {
    return scalefs_sendto(me, us, fd, bytes, strlen(bytes), name, name == NULL ? 0 : strlen(name));
}
static long d_recvfrom(int fd, size_t size) {
    size_t name_size = 200;
    memset(text, 0, sizeof text);
    return scalefs_recvfrom(me, us, fd, text, size, text + 4096, &name_size);
}
static long at_base;
static long d_mmap(uint64_t size, uint32_t access, uint32_t flags, int fd, long offset) {
    long found = scalefs_mmap(me, us, 0, size, access, flags, fd, offset);
    if (found < 0) return found;
    at_base = found;
    return 0;
}
static long d_munmap(long at, uint64_t size) { return scalefs_munmap(me, us, at_base + at, size); }
static long d_mprotect(long at, uint64_t size, uint32_t access) { return scalefs_mprotect(me, us, at_base + at, size, access); }
static long d_mremap(long at, uint64_t old_size, uint64_t size) {
    long found = scalefs_mremap(me, us, at_base + at, old_size, size, SCALEFS_REMAP_MAYMOVE, 0);
    if (found < 0) return found;
    at_base = found;
    return 0;
}
static long d_discard(long at, uint64_t size) { return scalefs_discard(me, us, at_base + at, size); }
static long d_msync(long at, uint64_t size) { return scalefs_msync(me, us, at_base + at, size); }
static long d_load(long at, size_t size) { memset(text, 0, sizeof text); return scalefs_load(me, us, at_base + at, text, size); }
static long d_store(long at, const char *bytes) { return scalefs_store(me, us, at_base + at, bytes, strlen(bytes)); }
static long d_wait(int *status) { return scalefs_wait(me, us, SCALEFS_ANY_CHILD, status); }
static scalefs_process *child_as(uint32_t user, uint32_t group, uint32_t count, const uint32_t *groups) {
    scalefs_credentials who = {user, group, count, groups};
    scalefs_process *child = NULL;
    if (scalefs_spawn(me, us, NULL, 0, 0, &who, &child) != 0) printf("no child: %s\n", scalefs_reason());
    return child;
}
#define CHILD { scalefs_process *parent_ = us, *child_ = NULL; scalefs_fork(me, us, &child_); us = child_; {
#define CHILD_AS(user, group, count, groups) { scalefs_process *parent_ = us, *child_ = child_as(user, group, count, groups); us = child_; {
#define END_CHILD(status) scalefs_process_exit_with(me, us, status); us = parent_; } int ended_ = -1; d_wait(&ended_); \
    printf("%d child ended %d\n", __LINE__, ended_); printf("%d %s = %ld\n", __LINE__, "waitpid(-1, NULL, WNOHANG) < 0 ? -errno : 0", d_wait(NULL)); }
#endif

#endif
