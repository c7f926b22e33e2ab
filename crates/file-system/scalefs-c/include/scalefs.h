/* ScaleFS for C: a POSIX file system in memory that shares no cache line where POSIX commutes.
 *
 * Made from crates/file-system/scalefs-c/src; do not edit. pkg-config --cflags --libs scalefs says how to build with it.
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
/* A flag of scalefs_open and scalefs_fcntl: each write goes to the end (O_APPEND). */
#define SCALEFS_APPEND 128u
/* Calls on pipes fail with -EAGAIN instead of waiting (O_NONBLOCK). */
#define SCALEFS_NONBLOCK 256u
/* A flag of what makes descriptors: exec closes them (O_CLOEXEC). */
#define SCALEFS_CLOSE_ON_EXEC 512u
/* A flag of what makes descriptors: any free number will do, so that threads share nothing in taking one (O_ANYFD). */
#define SCALEFS_ANY_NUMBER 1024u
/* A flag of scalefs_open: the descriptor only stands for what the path leads to, with SCALEFS_NO_FOLLOW for a symbolic link itself
 * (O_PATH). No right to it is asked for, and it lets nobody read, write or change it. */
#define SCALEFS_HANDLE 4096u
/* A flag of scalefs_open with SCALEFS_WRITE: a new file without a name, in the directory to which the path leads (O_TMPFILE).
 * scalefs_linkat gives it one. */
#define SCALEFS_TEMPORARY 8192u
/* The version of this interface; it grows when something is added, and nothing is taken away. */
#define SCALEFS_VERSION 2u
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
    uint64_t device; /* Of a name for a device its number, as st_rdev. Since version 2 of the library. */
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

/* Opens a file and returns its descriptor, the lowest that is free, or with SCALEFS_ANY_NUMBER any. SCALEFS_APPEND,
 * SCALEFS_NONBLOCK and SCALEFS_CLOSE_ON_EXEC are flags of the descriptor. */
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

/* Sets the descriptor's offset: whence is 0 from the start, 1 from the offset, 2 from the end, 3 to the next data and 4 to the
 * next hole from there on (SEEK_DATA, SEEK_HOLE: by pages, and zeros in a hole are one). Returns the new offset. */
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
 * where to go on; returns 1 if there may be more, 0 at the end, from where on there are none. It may make calls by the same thread:
 * memory that is given up meanwhile becomes free afterwards. */
int scalefs_list(scalefs_thread *thread, scalefs_process *process, const char *path, uint64_t *cookie, scalefs_each each, void *argument);
/* scalefs_fcntl returns the flags: SCALEFS_READ, SCALEFS_WRITE, SCALEFS_APPEND, SCALEFS_NONBLOCK (F_GETFL). */
#define SCALEFS_GET_FLAGS 0u
/* It sets SCALEFS_APPEND and SCALEFS_NONBLOCK as in its argument (F_SETFL). */
#define SCALEFS_SET_FLAGS 1u
/* It returns another descriptor, the lowest from its argument on (F_DUPFD). */
#define SCALEFS_DUPLICATE 2u
/* It lets the descriptor be closed by exec if its argument is not 0 (F_SETFD). */
#define SCALEFS_SET_ON_EXEC 3u
/* It returns 1 if exec closes the descriptor, 0 if not (F_GETFD). */
#define SCALEFS_GET_ON_EXEC 4u
/* As SCALEFS_DUPLICATE; exec closes the new one (F_DUPFD_CLOEXEC). */
#define SCALEFS_DUPLICATE_CLOSING 5u

/* One of several buffers; its layout is that of struct iovec. */
typedef struct scalefs_buffer {
    void *start; /* Its bytes. */
    size_t size; /* How many. */
} scalefs_buffer;

/* Returns another descriptor for what one leads to, the lowest that is free. */
int scalefs_dup(scalefs_thread *thread, scalefs_process *process, int fd);

/* Lets target lead to what fd leads to, instead of to what it did (dup2); returns it. */
int scalefs_dup2(scalefs_thread *thread, scalefs_process *process, int fd, int target);

/* As scalefs_dup2, but that two equal numbers are -EINVAL, and exec closes target with SCALEFS_CLOSE_ON_EXEC (dup3). */
int scalefs_dup3(scalefs_thread *thread, scalefs_process *process, int fd, int target, uint32_t flags);

/* Makes a pipe: ends[0] is to be read, ends[1] to be written. flags may be SCALEFS_NONBLOCK, SCALEFS_CLOSE_ON_EXEC and
 * SCALEFS_ANY_NUMBER. A call that finds nothing to do is -EAGAIN in any case: scalefs_poll waits. */
int scalefs_pipe(scalefs_thread *thread, scalefs_process *process, int *ends, uint32_t flags);

/* Does with a descriptor what command says: SCALEFS_GET_FLAGS, SCALEFS_SET_FLAGS, SCALEFS_DUPLICATE,
 * SCALEFS_DUPLICATE_CLOSING, SCALEFS_SET_ON_EXEC, SCALEFS_GET_ON_EXEC. */
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
/* In place of follow_link in scalefs_linkat, scalefs_chownat and scalefs_utimensat: the path, which may be NULL, is not looked at,
 * and the call is on what directory itself leads to (AT_EMPTY_PATH). */
#define SCALEFS_EMPTY_PATH (2)
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

/* Writes what a symbolic link leads to into a buffer, as scalefs_readlink; with an empty path that which directory stands for. */
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

/* Gives the file that a path leads to this size; scalefs_truncate does that with a descriptor. */
int scalefs_truncateat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, int64_t size_bytes);

/* Makes an empty file, or a name for a pipe, a socket or a device outside (mknodat): mode has one of S_IFREG, S_IFIFO, S_IFSOCK,
 * S_IFCHR and S_IFBLK, and permission bits; device is its number, or 0. What a name is for is the program's matter: opening one
 * is -ENXIO. */
int scalefs_mknodat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, uint32_t mode, uint64_t device);

/* Sets permission bits of what a descriptor leads to. */
int scalefs_fchmod(scalefs_thread *thread, scalefs_process *process, int fd, uint32_t mode);

/* Sets user and group of what a descriptor leads to; SCALEFS_SAME_ID leaves one as it is. */
int scalefs_fchown(scalefs_thread *thread, scalefs_process *process, int fd, uint32_t user, uint32_t group);

/* Sets the times of what a descriptor leads to, as scalefs_utimensat. */
int scalefs_futimens(scalefs_thread *thread, scalefs_process *process, int fd, int64_t accessed_ns, int64_t modified_ns, uint32_t which);

/* Makes the directory that a descriptor leads to the working directory. */
int scalefs_fchdir(scalefs_thread *thread, scalefs_process *process, int fd);

/* Writes the path of the working directory and a NUL into a buffer; returns how many bytes, with the NUL. -ERANGE if there
 * is not so much room, -ENOENT if the directory was removed. */
int64_t scalefs_getcwd(scalefs_thread *thread, scalefs_process *process, char *into, size_t size);

/* Sets the permission bits that new objects do not get; returns those that they did not get before. */
int scalefs_umask(scalefs_thread *thread, scalefs_process *process, uint32_t mask);

/* A name of a listing, in a record of record_size bytes, laid out as struct dirent of Linux. */
typedef struct scalefs_entry {
    uint64_t number; /* Number of what it leads to. */
    int64_t next; /* Offset of the descriptor from which a listing goes on after it (scalefs_seek). */
    uint16_t record_size; /* Where the next record begins, from the start of this one. */
    uint8_t kind; /* What it leads to, as d_type of Linux: bits 12 to 15 of st_mode. */
    char name[5]; /* The name and a NUL; longer than this. */
} scalefs_entry;

/* Writes as many names of an open directory into a buffer as there is room for, each as a scalefs_entry, from the
 * descriptor's offset on, which moves behind the last one. Returns how many bytes it wrote, 0 at the end, and -EINVAL if there
 * is no room for the next name. scalefs_seek to 0 begins again. */
int64_t scalefs_getdents(scalefs_thread *thread, scalefs_process *process, int fd, void *into, size_t size);
/* There is something to read (POLLIN). */
#define SCALEFS_POLL_IN 1u
/* There is room to write (POLLOUT). */
#define SCALEFS_POLL_OUT 4u
/* Told in any case: all readers of the pipe have gone (POLLERR). */
#define SCALEFS_POLL_ERROR 8u
/* Told in any case: all writers of the pipe have gone (POLLHUP). */
#define SCALEFS_POLL_HANG_UP 16u
/* Told in any case: the descriptor is not open (POLLNVAL). */
#define SCALEFS_POLL_INVALID 32u

/* A descriptor to look at. */
typedef struct scalefs_poll_entry {
    int fd; /* The descriptor; below 0: none. */
    uint32_t wanted; /* What is asked: SCALEFS_POLL_IN, SCALEFS_POLL_OUT. */
    uint32_t found; /* What is so, of that and of what is told in any case. */
} scalefs_poll_entry;

/* Looks at descriptors until one has what is wanted of it, or so many milliseconds have passed; 0: once, below 0: without
 * end. Returns of how many something was found. A socket always seems to have room. -EDEADLK within a callback, unless
 * timeout_ms is 0. */
int scalefs_poll(scalefs_thread *thread, scalefs_process *process, scalefs_poll_entry *entries, uint32_t count, int timeout_ms);
/* A lock of the process: it ends when the process closes any descriptor of the file (F_SETLK). */
#define SCALEFS_OF_PROCESS 0u
/* A lock of what a descriptor leads to: it ends with the last descriptor that leads there (F_OFD_SETLK). */
#define SCALEFS_OF_DESCRIPTION 1u
/* How a range is locked: not at all (F_UNLCK, LOCK_UN). */
#define SCALEFS_UNLOCKED 0u
/* Others may lock it so, too (F_RDLCK, LOCK_SH). */
#define SCALEFS_SHARED_LOCK 1u
/* No one else may lock it (F_WRLCK, LOCK_EX). */
#define SCALEFS_EXCLUSIVE_LOCK 2u
/* A flag of scalefs_set_lock and scalefs_flock: wait until no other lock is in the way (F_SETLKW). */
#define SCALEFS_WAIT 1u

/* A range of a file, and how it is locked. */
typedef struct scalefs_lock {
    uint32_t kind; /* SCALEFS_OF_PROCESS or SCALEFS_OF_DESCRIPTION. */
    uint32_t mode; /* SCALEFS_UNLOCKED, SCALEFS_SHARED_LOCK or SCALEFS_EXCLUSIVE_LOCK. */
    int64_t start; /* Where it begins, counted as in scalefs_seek. */
    int64_t length; /* How many bytes; 0: all from there on, however many there will be; below 0: those before start. */
    uint32_t whence; /* From where start counts: 0 the first byte, 1 the descriptor's offset, 2 the end of the file. */
    uint32_t has_process; /* For answers: 1 if a process has the lock, whose number is below. */
    uint64_t process; /* For answers: the number of the process, as scalefs_wait has it. */
} scalefs_lock;

/* Locks or unlocks a range of a file (fcntl with F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW). It becomes what lock says, also where
 * it was locked before. -EAGAIN where another's lock is in the way, with SCALEFS_WAIT in flags only after that has gone;
 * -EDEADLK where processes would wait for each other; -EBADF if fd is not open for reading what is to be shared, or for
 * writing what is to be exclusive; -ENOLCK without memory; -EOPNOTSUPP in a transaction. */
int scalefs_set_lock(scalefs_thread *thread, scalefs_process *process, int fd, const scalefs_lock *lock, uint32_t flags);

/* Looks for what is in the way of a lock (fcntl with F_GETLK, F_OFD_GETLK): lock becomes that, with start from the first byte, or only
 * its mode SCALEFS_UNLOCKED if nothing is. The mode that is asked for is not SCALEFS_UNLOCKED. */
int scalefs_get_lock(scalefs_thread *thread, scalefs_process *process, int fd, scalefs_lock *lock);

/* Locks or unlocks all of a file (flock): the lock is of what fd leads to, and locks of ranges know nothing of it. mode is
 * SCALEFS_UNLOCKED, SCALEFS_SHARED_LOCK or SCALEFS_EXCLUSIVE_LOCK, flags 0 or SCALEFS_WAIT. A lock that is to be another one is given up
 * first, also where that then is -EAGAIN. */
int scalefs_flock(scalefs_thread *thread, scalefs_process *process, int fd, uint32_t how, uint32_t flags);
/* A flag of scalefs_setxattrat: the attribute must not be there yet (XATTR_CREATE). */
#define SCALEFS_MUST_BE_NEW 1u
/* A flag of scalefs_setxattrat: the attribute must be there (XATTR_REPLACE). */
#define SCALEFS_MUST_EXIST 2u
/* A bit of scalefs_fallocate's mode: the file stays as long as it is (FALLOC_FL_KEEP_SIZE). */
#define SCALEFS_KEEP_SIZE 1u
/* A bit of scalefs_fallocate's mode: the bytes become zeros, and pages are given back (FALLOC_FL_PUNCH_HOLE). */
#define SCALEFS_PUNCH_HOLE 2u

/* Reads an extended attribute (getxattr; lgetxattr with follow_link 0; fgetxattr with SCALEFS_EMPTY_PATH in place of it): how many bytes its
 * value has, also where size is 0, and then nothing is read. Names begin with "user.", "trusted." or "security.". -ENODATA if
 * there is none; -ERANGE if the value has more than size bytes. */
int64_t scalefs_getxattrat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, int follow_link, const char *name, void *value, size_t size);

/* Sets an extended attribute (setxattr and its kin, as scalefs_getxattrat); flags 0, SCALEFS_MUST_BE_NEW or SCALEFS_MUST_EXIST.
 * -EOPNOTSUPP for other namespaces; -EPERM where the caller may not; -ENOSPC where all attributes of the object would take more
 * than 65,000 bytes. */
int scalefs_setxattrat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, int follow_link, const char *name, const void *value, size_t size, uint32_t flags);

/* Tells the names of all extended attributes (listxattr and its kin, as scalefs_getxattrat), each with a NUL: how many bytes they
 * take, also where size is 0, and then none is written. -ERANGE if that is more than size. */
int64_t scalefs_listxattrat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, int follow_link, void *names, size_t size);

/* Removes an extended attribute (removexattr and its kin, as scalefs_getxattrat). -ENODATA if there is none. */
int scalefs_removexattrat(scalefs_thread *thread, scalefs_process *process, int directory, const char *path, int follow_link, const char *name);

/* Takes room for length bytes of a file from offset on, so that writes there find it, and makes the file as long (fallocate,
 * posix_fallocate). With SCALEFS_KEEP_SIZE in mode only as far as the file goes; with SCALEFS_PUNCH_HOLE as well the bytes become
 * zeros, and whole pages are free. -ENOSPC where there is not so much, and nothing has changed; -EOPNOTSUPP for other modes. */
int scalefs_fallocate(scalefs_thread *thread, scalefs_process *process, int fd, uint32_t mode, int64_t offset, int64_t length);

/* Tells how many bytes of room the data of a file take (st_blocks counts them by 512): those of pages that are there, so that
 * holes take none. Looks at each page; what is no file takes no room. */
int64_t scalefs_occupied(scalefs_thread *thread, scalefs_process *process, int fd);
/* scalefs_wait waits for any child. */
#define SCALEFS_ANY_CHILD (-1)
/* A flag of scalefs_spawn: the child gets no descriptors but those of its actions. */
#define SCALEFS_SPAWN_NOTHING 1u
/* An action of scalefs_spawn: open path under number with flags and mode. */
#define SCALEFS_ACTION_OPEN 0u
/* An action: close number, if it is open. */
#define SCALEFS_ACTION_CLOSE 1u
/* An action: let target lead to what number leads to. */
#define SCALEFS_ACTION_DUPLICATE 2u
/* An action: make the directory of path the working directory. */
#define SCALEFS_ACTION_CHDIR 3u

/* What is done in a new process before it runs. */
typedef struct scalefs_action {
    uint32_t action; /* Which action. */
    int number; /* A descriptor. */
    int target; /* Another descriptor. */
    uint32_t flags; /* Flags of scalefs_open, but SCALEFS_CLOSE_ON_EXEC and SCALEFS_ANY_NUMBER. */
    uint32_t mode; /* Permission bits of a file that is made. */
    const char *path; /* A path, or NULL. */
} scalefs_action;

/* Who calls. */
typedef struct scalefs_credentials {
    uint32_t user; /* User. */
    uint32_t group; /* Group, which new files get. */
    uint32_t group_count; /* How many supplementary groups there are, at most 32. */
    const uint32_t *groups; /* The supplementary groups, or NULL. */
} scalefs_credentials;

/* As scalefs_process_new, for a user with supplementary groups. */
scalefs_process *scalefs_process_new_as(scalefs_thread *thread, const scalefs_credentials *who);

/* Makes a child with the same descriptors, memory, mask and working directory; *child becomes its handle, for
 * scalefs_process_exit at the end. -EAGAIN or -ENOMEM, and there is none. */
int scalefs_fork(scalefs_thread *thread, scalefs_process *process, scalefs_process **child);

/* Makes a child as for a new program: with the caller's mask and working directory, the descriptors that exec does not close,
 * no memory, and what the actions do, one after the other (posix_spawn). flags is 0 or SCALEFS_SPAWN_NOTHING. who is NULL, or
 * who it is, which user 0 alone may say. *child becomes its handle, for scalefs_process_exit at the end. */
int scalefs_spawn(scalefs_thread *thread, scalefs_process *process, const scalefs_action *actions, uint32_t action_count, uint32_t flags, const scalefs_credentials *who, scalefs_process **child);

/* Begins a new program: gives up all memory, and closes the descriptors that exec closes. */
int scalefs_exec(scalefs_thread *thread, scalefs_process *process);

/* As scalefs_process_exit; whoever waits for the process is told this status, from 0 to 255. */
int scalefs_process_exit_with(scalefs_thread *thread, scalefs_process *process, int status);

/* Looks for a child that has ended, that of this number or SCALEFS_ANY_CHILD, and forgets it; returns its number and sets
 * *status, unless status is NULL, as waitpid does. 0 if all go on, -ECHILD if there is none. */
int64_t scalefs_wait(scalefs_thread *thread, scalefs_process *process, int64_t child, int *status);

/* The number of a process, above 0, which no other of its instance has or will have. */
int64_t scalefs_getpid(scalefs_thread *thread, scalefs_process *process);

/* The number of its parent; 0 if it has none, or if that has ended. */
int64_t scalefs_getppid(scalefs_thread *thread, scalefs_process *process);
/* A flag of sockets: messages may arrive in any order, so that sends and receives of different threads share nothing. */
#define SCALEFS_UNORDERED 65536u

/* Makes a socket that has neither name nor peer, and returns its descriptor. flags may be SCALEFS_UNORDERED,
 * SCALEFS_NONBLOCK, SCALEFS_CLOSE_ON_EXEC and SCALEFS_ANY_NUMBER. No call on sockets waits: scalefs_poll does. */
int scalefs_socket(scalefs_thread *thread, scalefs_process *process, uint32_t flags);

/* Makes two sockets, each the other's peer, with the flags of scalefs_socket. */
int scalefs_socketpair(scalefs_thread *thread, scalefs_process *process, int *both, uint32_t flags);

/* Names a socket: from 1 to 107 bytes of any value. */
int scalefs_bind(scalefs_thread *thread, scalefs_process *process, int fd, const void *name, size_t name_size);

/* Writes the name of a socket into a buffer, cut off at its end; returns how many bytes the name has, 0 if there is none. */
int64_t scalefs_getsockname(scalefs_thread *thread, scalefs_process *process, int fd, void *into, size_t size);

/* Sends a message to the socket that has a name, or, if name is NULL, to the peer; returns its size. */
int64_t scalefs_sendto(scalefs_thread *thread, scalefs_process *process, int fd, const void *from, size_t size, const void *name, size_t name_size);

/* Takes a message into a buffer; returns how many bytes of it there was room for. If sender is not NULL, the name of the socket
 * that sent it goes there, cut off at *sender_size bytes, and *sender_size becomes the name's size, 0 if it has none. */
int64_t scalefs_recvfrom(scalefs_thread *thread, scalefs_process *process, int fd, void *into, size_t size, void *sender, size_t *sender_size);
/* Everybody sees what is stored (MAP_SHARED). */
#define SCALEFS_MAP_SHARED 1u
/* The process alone sees what it stores (MAP_PRIVATE). */
#define SCALEFS_MAP_PRIVATE 2u
/* With SCALEFS_MAP_PRIVATE: memory that is zero at first; fd is not looked at (MAP_ANONYMOUS). */
#define SCALEFS_MAP_ANONYMOUS 4u
/* The address is where it goes, in place of what is there (MAP_FIXED). */
#define SCALEFS_MAP_FIXED 8u
/* The address is where it goes, unless something is there (MAP_FIXED_NOREPLACE). */
#define SCALEFS_MAP_FIXED_NOREPLACE 16u
/* A flag of scalefs_mremap: it may go elsewhere (MREMAP_MAYMOVE). */
#define SCALEFS_REMAP_MAYMOVE 1u
/* With SCALEFS_REMAP_MAYMOVE: it goes to new_address, in place of what is there (MREMAP_FIXED). */
#define SCALEFS_REMAP_FIXED 2u

/* As scalefs_create; processes may have windows (scalefs_window). */
scalefs_instance *scalefs_create_mappable(size_t metadata_bytes, uint32_t page_count, uint32_t core_count, uint64_t hash_seed);

/* Reserves addresses of the program for so many pages of 4096 bytes, until the process exits; returns the first. What is mapped
 * there is reached by ordinary loads and stores, once it was touched (scalefs_touch). -ENOMEM if the process has one
 * already, or the instance is not of scalefs_create_mappable. */
int64_t scalefs_window(scalefs_thread *thread, scalefs_process *process, uint64_t page_count);

/* Maps memory of the process; returns its address. access is 0 or SCALEFS_READ and SCALEFS_WRITE; offset is the first byte
 * of the file that is mapped. Without SCALEFS_MAP_FIXED and its like address is not looked at. */
int64_t scalefs_mmap(scalefs_thread *thread, scalefs_process *process, uint64_t address, uint64_t size_bytes, uint32_t access, uint32_t flags, int fd, int64_t offset);

/* Unmaps memory; where nothing is mapped it does nothing. */
int scalefs_munmap(scalefs_thread *thread, scalefs_process *process, uint64_t address, uint64_t size_bytes);

/* Sets what may be done with memory. */
int scalefs_mprotect(scalefs_thread *thread, scalefs_process *process, uint64_t address, uint64_t size_bytes, uint32_t access);

/* Gives a mapping another size, or another place; returns its address. */
int64_t scalefs_mremap(scalefs_thread *thread, scalefs_process *process, uint64_t address, uint64_t old_size_bytes, uint64_t new_size_bytes, uint32_t flags, uint64_t new_address);

/* Forgets what the process has stored to private memory (madvise with MADV_DONTNEED). */
int scalefs_discard(scalefs_thread *thread, scalefs_process *process, uint64_t address, uint64_t size_bytes);

/* What was stored to shared mappings is in their files: it always is. -ENOMEM where nothing is mapped. */
int scalefs_msync(scalefs_thread *thread, scalefs_process *process, uint64_t address, uint64_t size_bytes);

/* Loads bytes from an address of the process. -EFAULT where its instruction would get a signal, which scalefs_reason names. */
int scalefs_load(scalefs_thread *thread, scalefs_process *process, uint64_t address, void *into, size_t size);

/* Stores bytes at an address of the process. -EFAULT as scalefs_load. */
int scalefs_store(scalefs_thread *thread, scalefs_process *process, uint64_t address, const void *from, size_t size);

/* Lets the page at an address of the process's window be reached by loads (SCALEFS_READ), or by loads and stores
 * (SCALEFS_WRITE), until another call takes it away again (scalefs_munmap, a cut of the file). -EFAULT as scalefs_load, and for
 * stores to the page in which a shared file ends. */
int scalefs_touch(scalefs_thread *thread, scalefs_process *process, uint64_t address, uint32_t access);
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
