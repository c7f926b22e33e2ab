/* ScaleFS for C: a POSIX file system in memory that shares no cache line where POSIX commutes.
 *
 * Made from crates/file-system/scalefs-c/src; do not edit. Link libscalefs_c.a, -lpthread, -lm, -ldl.
 *
 * A thread handle is used by one thread at a time. Paths end with NUL. A call returns what it returns in POSIX,
 * or a negative error number of Linux: -EINVAL where a path, a buffer or an answer is NULL, or a size is above
 * SSIZE_MAX, where a handle is NULL, was given up, or is of another instance, and in a child of fork,
 * which makes an instance of its own. scalefs_reason says which. An instance that was destroyed must not be used. */
#ifndef SCALEFS_H
#define SCALEFS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct scalefs_instance scalefs_instance;
typedef struct scalefs_thread scalefs_thread;
typedef struct scalefs_process scalefs_process;

/* The version of this interface; it grows when something is added, and nothing is taken away. */
#define SCALEFS_VERSION 1u
/* Open for reading. */
#define SCALEFS_READ 1u
/* Open for writing. */
#define SCALEFS_WRITE 2u
/* Create the file if the name does not exist (O_CREAT). */
#define SCALEFS_CREATE 4u
/* With SCALEFS_CREATE: the name must not exist (O_EXCL). */
#define SCALEFS_EXCLUSIVE 8u
/* Make an existing file empty (O_TRUNC). */
#define SCALEFS_TRUNCATE 16u
/* It must be a directory (O_DIRECTORY). */
#define SCALEFS_DIRECTORY 32u
/* It must not be a symbolic link (O_NOFOLLOW). */
#define SCALEFS_NO_FOLLOW 64u
/* Fields of struct scalefs_status: permission bits, user, group, access time. */
#define SCALEFS_PERMISSIONS 1u
/* Number of names. */
#define SCALEFS_LINK_COUNT 2u
/* Size. */
#define SCALEFS_SIZE 4u
/* Times of modification and of change. */
#define SCALEFS_TIMES 8u
/* All fields. */
#define SCALEFS_ALL 15u
/* scalefs_rename replaces what the new name leads to. */
#define SCALEFS_REPLACE 0u
/* It fails if the new name exists (RENAME_NOREPLACE). */
#define SCALEFS_NO_REPLACE 1u
/* Both names exist and exchange what they lead to (RENAME_EXCHANGE). */
#define SCALEFS_EXCHANGE 2u

/* What scalefs_stat tells. Fields that were not asked for are zero; number and kind always come. */
typedef struct scalefs_status {
    uint32_t struct_size; /* Its version: set by the caller to sizeof(scalefs_status). */
    uint32_t mode; /* Kind and permission bits, as st_mode. */
    uint64_t number; /* Number of the inode, never used again. */
    uint32_t user; /* Owner. */
    uint32_t group; /* Group. */
    uint32_t link_count; /* Number of names; 1 for a directory. */
    uint64_t size_bytes; /* Bytes. */
    int64_t accessed_ns; /* Nanoseconds since 1970. */
    int64_t modified_ns; /* Nanoseconds since 1970. */
    int64_t changed_ns; /* Nanoseconds since 1970. */
} scalefs_status;

/* Gets one name of a listing (not terminated by NUL), the number of its inode, and the argument given to scalefs_list;
 * returns 0 to stop. */
typedef int (*scalefs_each)(const char *, size_t, uint64_t, void *);

/* Makes an empty file system for threads on core_count cores (1 to 256): so many bytes of memory for names and inodes, and
 * page_count pages of 4096 bytes for data. hash_seed moves hash collisions. Returns NULL if that cannot be had:
 * scalefs_reason says why. */
scalefs_instance *scalefs_create(size_t metadata_bytes, uint32_t page_count, uint32_t core_count, uint64_t hash_seed);

/* Frees a file system that no thread is attached to; -EBUSY otherwise. Its threads and processes must not be used afterwards. */
int scalefs_destroy(scalefs_instance *instance);

/* Attaches the calling thread as a core, from 0; NULL if there is no such core or another thread is it. */
scalefs_thread *scalefs_attach(scalefs_instance *instance, uint32_t core);

/* Detaches a thread; nothing happens of a transaction that it has open. Within a callback it does nothing. */
void scalefs_detach(scalefs_thread *thread);

/* Does what is left to do between calls: for threads that call seldom. Cores without a thread are served too. Within a
 * callback it does nothing. */
void scalefs_maintain(scalefs_thread *thread);

/* A process of a user and a group, working in the root directory, without descriptors; NULL without memory for it. */
scalefs_process *scalefs_process_new(scalefs_thread *thread, uint32_t user, uint32_t group);

/* Ends a process: closes its descriptors, and frees it. What is called on its behalf afterwards is -EINVAL. -EBUSY if it has
 * a transaction open, or within a callback. */
int scalefs_process_exit(scalefs_thread *thread, scalefs_process *process);

/* Why the library refused what this thread asked for last, in words: after NULL, or after -EINVAL for a handle, a
 * pointer, a size or a flag. The text stays until it refuses the next. */
const char *scalefs_reason(void);

/* The SCALEFS_VERSION that the library was built with. */
uint32_t scalefs_version(void);

/* Opens a file and returns its descriptor, the lowest that is free. */
int scalefs_open(scalefs_thread *thread, scalefs_process *process, const char *path, uint32_t flags, uint32_t mode);

/* Closes a descriptor. */
int scalefs_close(scalefs_thread *thread, scalefs_process *process, int fd);

/* Reads up to size bytes at the descriptor's offset; returns how many, 0 at the end. */
int64_t scalefs_read(scalefs_thread *thread, scalefs_process *process, int fd, void *into, size_t size);

/* Writes size bytes at the descriptor's offset; returns how many were written. */
int64_t scalefs_write(scalefs_thread *thread, scalefs_process *process, int fd, const void *from, size_t size);

/* Reads up to size bytes at an offset. */
int64_t scalefs_pread(scalefs_thread *thread, scalefs_process *process, int fd, void *into, size_t size, int64_t offset);

/* Writes size bytes at an offset. */
int64_t scalefs_pwrite(scalefs_thread *thread, scalefs_process *process, int fd, const void *from, size_t size, int64_t offset);

/* Sets the descriptor's offset: whence is 0 from the start, 1 from the offset, 2 from the end. Returns the new offset. */
int64_t scalefs_seek(scalefs_thread *thread, scalefs_process *process, int fd, int64_t offset, int whence);

/* Gives a file this size. */
int scalefs_truncate(scalefs_thread *thread, scalefs_process *process, int fd, int64_t size_bytes);

/* Tells about what a path leads to (a symbolic link at its end followed if follow is not 0): the fields that are wanted. */
int scalefs_stat(scalefs_thread *thread, scalefs_process *process, const char *path, int follow_link, uint32_t fields, scalefs_status *status);

/* Tells about an open file; what is not wanted is not read, so that it shares nothing with its changes (fstatx). */
int scalefs_fstatx(scalefs_thread *thread, scalefs_process *process, int fd, uint32_t fields, scalefs_status *status);

/* Whether a path leads to something that may be read (4), written (2), executed (1); 0 asks whether it exists. */
int scalefs_access(scalefs_thread *thread, scalefs_process *process, const char *path, uint32_t wanted);

/* Makes a directory. */
int scalefs_mkdir(scalefs_thread *thread, scalefs_process *process, const char *path, uint32_t mode);

/* Removes an empty directory. */
int scalefs_rmdir(scalefs_thread *thread, scalefs_process *process, const char *path);

/* Makes a directory the working directory. */
int scalefs_chdir(scalefs_thread *thread, scalefs_process *process, const char *path);

/* Removes a name. */
int scalefs_unlink(scalefs_thread *thread, scalefs_process *process, const char *path);

/* Sets permission bits. */
int scalefs_chmod(scalefs_thread *thread, scalefs_process *process, const char *path, uint32_t mode);

/* Makes another name of a file. */
int scalefs_link(scalefs_thread *thread, scalefs_process *process, const char *old_path, const char *new_path);

/* Makes a symbolic link to target, which need not exist. */
int scalefs_symlink(scalefs_thread *thread, scalefs_process *process, const char *target, const char *path);

/* Writes what a symbolic link leads to into a buffer, cut off at size bytes and without NUL; returns how many. */
int64_t scalefs_readlink(scalefs_thread *thread, scalefs_process *process, const char *path, char *into, size_t size);

/* Gives what the old path leads to the new one; mode is SCALEFS_REPLACE, SCALEFS_NO_REPLACE or SCALEFS_EXCHANGE. */
int scalefs_rename(scalefs_thread *thread, scalefs_process *process, const char *old_path, const char *new_path, uint32_t mode);

/* Tells each the names of a directory from *cookie on (0: from the start), "." and ".." included, and sets *cookie to
 * where to go on; returns 1 if there may be more, 0 at the end. It may make calls by the same thread: memory that is given
 * up meanwhile becomes free afterwards. */
int scalefs_list(scalefs_thread *thread, scalefs_process *process, const char *path, uint64_t *cookie, scalefs_each each, void *argument);
/* A flag of scalefs_fcntl and scalefs_pipe: each write goes to the end (O_APPEND). */
#define SCALEFS_APPEND 128u
/* Calls on pipes fail with -EAGAIN instead of waiting (O_NONBLOCK). */
#define SCALEFS_NONBLOCK 256u
/* scalefs_fcntl returns the flags: SCALEFS_READ, SCALEFS_WRITE, SCALEFS_APPEND, SCALEFS_NONBLOCK (F_GETFL). */
#define SCALEFS_GET_FLAGS 0u
/* It sets SCALEFS_APPEND and SCALEFS_NONBLOCK as in its argument (F_SETFL). */
#define SCALEFS_SET_FLAGS 1u
/* It returns another descriptor, the lowest from its argument on (F_DUPFD). */
#define SCALEFS_DUPLICATE 2u
/* It lets the descriptor be closed by exec if its argument is not 0 (F_SETFD). */
#define SCALEFS_SET_ON_EXEC 3u

/* One of several buffers; its layout is that of struct iovec. */
typedef struct scalefs_buffer {
    void *start; /* Its bytes. */
    size_t size; /* How many. */
} scalefs_buffer;

/* Returns another descriptor for what one leads to, the lowest that is free. */
int scalefs_dup(scalefs_thread *thread, scalefs_process *process, int fd);

/* Lets target lead to what fd leads to, instead of to what it did (dup2); returns it. */
int scalefs_dup2(scalefs_thread *thread, scalefs_process *process, int fd, int target);

/* Makes a pipe: ends[0] is to be read, ends[1] to be written. flags is 0 or SCALEFS_NONBLOCK; without it a call that
 * finds nothing to do is -EAGAIN all the same, since no thread of the library waits. */
int scalefs_pipe(scalefs_thread *thread, scalefs_process *process, int *ends, uint32_t flags);

/* Does with a descriptor what command says: SCALEFS_GET_FLAGS, SCALEFS_SET_FLAGS, SCALEFS_DUPLICATE, SCALEFS_SET_ON_EXEC. */
int scalefs_fcntl(scalefs_thread *thread, scalefs_process *process, int fd, uint32_t command, uint32_t argument);

/* Reads into several buffers, one after the other, in one step; returns how many bytes. */
int64_t scalefs_readv(scalefs_thread *thread, scalefs_process *process, int fd, const scalefs_buffer *into, int count);

/* Writes several buffers, one after the other, in one step; returns how many bytes. */
int64_t scalefs_writev(scalefs_thread *thread, scalefs_process *process, int fd, const scalefs_buffer *from, int count);

/* Reads into several buffers from an offset on. */
int64_t scalefs_preadv(scalefs_thread *thread, scalefs_process *process, int fd, const scalefs_buffer *into, int count, int64_t offset);

/* Writes several buffers at an offset. */
int64_t scalefs_pwritev(scalefs_thread *thread, scalefs_process *process, int fd, const scalefs_buffer *from, int count, int64_t offset);
/* In place of a directory's descriptor: paths start at the working directory (AT_FDCWD). */
#define SCALEFS_AT_CWD (-100)
/* scalefs_unlinkat removes a directory (AT_REMOVEDIR). */
#define SCALEFS_REMOVE_DIRECTORY 1u
/* scalefs_utimensat sets the time of access to what is given. */
#define SCALEFS_SET_ACCESSED 1u
/* It sets the time of modification to what is given. */
#define SCALEFS_SET_MODIFIED 2u
/* It sets the time of access to the present (UTIME_NOW). */
#define SCALEFS_ACCESSED_NOW 4u
/* It sets the time of modification to the present. */
#define SCALEFS_MODIFIED_NOW 8u
/* scalefs_chownat leaves this user or group as it is. */
#define SCALEFS_SAME_ID 4294967295u

/* What scalefs_statvfs tells. */
typedef struct scalefs_space {
    uint32_t struct_size; /* Its version: set by the caller to sizeof(scalefs_space). */
    uint32_t block_bytes; /* Bytes of a block. */
    uint64_t blocks; /* Blocks for data. */
    uint64_t free_blocks; /* Those that are free. */
    uint64_t inodes; /* Most inodes that there can be. */
    uint64_t free_inodes; /* Those that can still be made. */
} scalefs_space;

/* Opens a file, as scalefs_open. */
int scalefs_openat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, uint32_t flags, uint32_t mode);

/* Tells about what a path leads to, as scalefs_stat. */
int scalefs_statat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, int follow_link, uint32_t fields, scalefs_status *status);

/* Whether what a path leads to may be used so, as scalefs_access. */
int scalefs_accessat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, int follow_link, uint32_t wanted);

/* Makes a directory. */
int scalefs_mkdirat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, uint32_t mode);

/* Removes a name; with SCALEFS_REMOVE_DIRECTORY that of an empty directory. */
int scalefs_unlinkat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, uint32_t flags);

/* Makes another name of a file, of a symbolic link itself unless follow_link is not 0. */
int scalefs_linkat(scalefs_thread *thread, scalefs_process *process, int old_directory, const char *old_path, int new_directory, const char *new_path, int follow_link);

/* Makes a symbolic link to target, which need not exist. */
int scalefs_symlinkat(scalefs_thread *thread, scalefs_process *process, const char *target, int directory, const char *path);

/* Writes what a symbolic link leads to into a buffer, as scalefs_readlink. */
int64_t scalefs_readlinkat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, char *into, size_t size);

/* Gives what the old path leads to the new one, as scalefs_rename. */
int scalefs_renameat(scalefs_thread *thread, scalefs_process *process, int old_directory, const char *old_path, int new_directory, const char *new_path, uint32_t mode);

/* Sets permission bits of what a path leads to. */
int scalefs_chmodat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, uint32_t mode);

/* Sets user and group of what a path leads to; SCALEFS_SAME_ID leaves one as it is. */
int scalefs_chownat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, int follow_link, uint32_t user, uint32_t group);

/* Sets the times that which names (SCALEFS_SET_ACCESSED and so on), in nanoseconds since 1970. */
int scalefs_utimensat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, int follow_link, int64_t accessed_ns, int64_t modified_ns, uint32_t which);

/* Tells how much room there is. */
int scalefs_statvfs(scalefs_thread *thread, scalefs_process *process, scalefs_space *space);
/* scalefs_xbegin with all that a transaction is by itself: nothing reaches a disk, and no memory of the program is rolled back. */
#define SCALEFS_TX_DEFAULTS 0u
/* Nothing reaches a disk: always so. */
#define SCALEFS_TX_NONDURABLE 1u
/* The program's memory is not rolled back: always so. */
#define SCALEFS_TX_NO_USER_ROLLBACK 2u
/* The library does not retry: always so. The program begins again after -ECANCELED. */
#define SCALEFS_TX_NO_AUTO_RETRY 4u
/* A call that a transaction does not offer returns -EOPNOTSUPP, and the transaction goes on: always so. */
#define SCALEFS_TX_ERROR_UNSUPPORTED 8u

/* Begins a transaction of the thread for a process: the thread's calls on names are parts of it until scalefs_xend or
 * scalefs_xabort. Other calls, such as those on descriptors, return -EOPNOTSUPP, and all that are made for another process
 * -EINVAL, these two included. -EINVAL if the thread has one open. The process does not exit before it ends (-EBUSY); where
 * the thread is detached, nothing of it happens. */
int scalefs_xbegin(scalefs_thread *thread, scalefs_process *process, uint32_t flags);

/* Ends the thread's transaction: all of it happens at this moment, and 0 comes back; or nothing of it, since what it has
 * seen is not so any more (-ECANCELED: begin again), or without memory (-ENOSPC). -EINVAL if there is none. */
int scalefs_xend(scalefs_thread *thread, scalefs_process *process);

/* Ends the thread's transaction: nothing of it happens. -ECANCELED if what it has seen is not so any more: what was concluded
 * from it need not be true. -EINVAL if there is none. */
int scalefs_xabort(scalefs_thread *thread, scalefs_process *process);

/* Makes an empty file, which must not exist, without a descriptor (POSIX mknod of a regular file). */
int scalefs_mknod(scalefs_thread *thread, scalefs_process *process, const char *path, uint32_t mode);

#ifdef __cplusplus
}
#endif

#endif
