/* ScaleFS for C: a POSIX file system in memory that shares no cache line where POSIX commutes.
 *
 * Made from crates/file-system/scalefs-c/src/lib.rs; do not edit. Link libscalefs_c.a, -lpthread, -lm, -ldl.
 *
 * A thread handle is used by one thread at a time. Paths end with NUL. A call returns what it returns in POSIX,
 * or a negative error number of Linux: -EINVAL where a path, a buffer or an answer is NULL, or a size is above
 * SSIZE_MAX. Instances, threads and processes are never NULL. */
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
    uint64_t number; /* Number of the inode, never used again. */
    uint32_t mode; /* Kind and permission bits, as st_mode. */
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
 * page_count pages of 4096 bytes for data. Returns NULL if that is not to be had. hash_seed moves hash collisions. */
scalefs_instance *scalefs_create(size_t metadata_bytes, uint32_t page_count, uint32_t core_count, uint64_t hash_seed);

/* Frees a file system that no thread is attached to; -EBUSY otherwise. Its processes must not be used afterwards. */
int scalefs_destroy(scalefs_instance *instance);

/* Attaches the calling thread as a core, from 0; NULL if there is no such core or another thread is it. */
scalefs_thread *scalefs_attach(scalefs_instance *instance, uint32_t core);

/* Detaches a thread. */
void scalefs_detach(scalefs_thread *thread);

/* Does what is left to do between calls: for threads that call seldom. Cores without a thread are served too. */
void scalefs_maintain(scalefs_thread *thread);

/* A process of a user and a group, working in the root directory, without descriptors. */
scalefs_process *scalefs_process_new(scalefs_thread *thread, uint32_t user, uint32_t group);

/* Ends a process: closes its descriptors, and frees it. */
void scalefs_process_exit(scalefs_thread *thread, scalefs_process *process);

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
 * where to go on; returns 1 if there may be more, 0 at the end. */
int scalefs_list(scalefs_thread *thread, scalefs_process *process, const char *path, uint64_t *cookie, scalefs_each each, void *argument);

#ifdef __cplusplus
}
#endif

#endif
