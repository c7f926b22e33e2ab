/* One sequence of calls, made by ScaleFS and by the host on tmpfs: every answer that is printed must be the same.
 * Arguments: a folder of the host, 1 if the caller may become other users, 1 if it may make devices. */
#include "door.h"

#define SHOW(found) show(__LINE__, #found, found)

/* Sizes, times and names of directories differ by design. */
static void show(int line, const char *what, struct found found) {
    printf("%d %s: %ld mode %o user %u group %u", line, what, found.answer, found.mode, found.user, found.group);
    if ((found.mode & 0170000) != 0040000) printf(" links %u size %ld device %lu", found.links, found.size, found.device);
    printf("\n");
}

static int by_name(const void *first, const void *second) { return strcmp(*(char *const *)first, *(char *const *)second); }

/* Lists a directory from where its descriptor is, with a buffer of this size; prints names and kinds in the order of the alphabet. */
static void list(int line, int fd, size_t size) {
    char buffer[4096], *lines[600];
    int count = 0;
    long got;
    while ((got = d_getdents(fd, buffer, size)) > 0) {
        for (long at = 0; at < got && count < 600; at += ((scalefs_entry *)(buffer + at))->record_size) {
            scalefs_entry *entry = (scalefs_entry *)(buffer + at);
            lines[count] = malloc(300);
            snprintf(lines[count++], 300, "%s kind %d", buffer + at + offsetof(scalefs_entry, name), entry->kind);
        }
    }
    printf("%d listing ends with %ld:", line, got);
    qsort(lines, count, sizeof *lines, by_name);
    for (int number = 0; number < count; number++) {
        printf(" %s,", lines[number]);
        free(lines[number]);
    }
    printf("\n");
}
#define LIST(fd, size) list(__LINE__, fd, size)

static void descriptors(void) {
    SAY(d_open(CWD, "f", READ | WRITE | CREATE, 0644));
    SAY(d_open(CWD, "f", WRITE | APPEND, 0));
    SAY(d_write(4, "one"));
    SAY(d_write(3, "two"));
    SAY(d_write(4, "three"));
    SAY(d_seek(4, 0, 1));
    SAY(d_pwrite(4, "four", 0));
    SAY(d_seek(3, 0, 0));
    SAY(d_read(3, 100));
    SAY(text[0] * 256 + text[7]);
    SAY(d_fcntl(4, SCALEFS_GET_FLAGS, 0));
    SAY(d_fcntl(4, SCALEFS_SET_FLAGS, 0));
    SAY(d_fcntl(4, SCALEFS_GET_FLAGS, 0));
    SAY(d_fcntl(4, SCALEFS_GET_ON_EXEC, 0));
    SAY(d_fcntl(4, SCALEFS_SET_ON_EXEC, 1));
    SAY(d_fcntl(4, SCALEFS_GET_ON_EXEC, 0));
    SAY(d_fcntl(77, SCALEFS_GET_ON_EXEC, 0));
    SAY(d_open(CWD, "f", READ | CLOSE_ON_EXEC | NONBLOCK, 0));
    SAY(d_fcntl(5, SCALEFS_GET_ON_EXEC, 0));
    SAY(d_fcntl(5, SCALEFS_GET_FLAGS, 0));
    SAY(d_dup(5));
    SAY(d_fcntl(6, SCALEFS_GET_ON_EXEC, 0));
    SAY(d_dup3(5, 9, CLOSE_ON_EXEC));
    SAY(d_fcntl(9, SCALEFS_GET_ON_EXEC, 0));
    SAY(d_dup3(5, 9, 0));
    SAY(d_fcntl(9, SCALEFS_GET_ON_EXEC, 0));
    SAY(d_dup3(5, 5, 0));
    SAY(d_dup3(77, 5, 0));
    SAY(d_dup3(5, -1, 0));
    SAY(d_dup2(9, 10));
    SAY(d_fcntl(5, SCALEFS_DUPLICATE_CLOSING, 20));
    SAY(d_fcntl(20, SCALEFS_GET_ON_EXEC, 0));
    SAY(d_fcntl(5, SCALEFS_DUPLICATE, 20));
    SAY(d_fcntl(21, SCALEFS_GET_ON_EXEC, 0));
    for (int fd = 3; fd < 22; fd++) d_close(fd);
    SAY(d_open(CWD, "f", READ, 0));
    SAY(d_close(3));
}

/* Holes and data, by pages of 4096 bytes. */
static void holes(void) {
    const long offsets[] = {0, 1, 4095, 4096, 8191, 8192, 12287, 16384, 20479, 20480, 40959, 40960, 50000, -1};
    SAY(d_open(CWD, "holes", READ | WRITE | CREATE, 0600));
    SAY(d_seek(3, 0, 3));
    SAY(d_seek(3, 0, 4));
    SAY(d_pwrite(3, "first", 0));
    SAY(d_pwrite(3, "second", 4096));
    SAY(d_pwrite(3, "fifth", 16384));
    for (int round = 0; round < 4; round++) {
        for (size_t place = 0; place < sizeof offsets / sizeof *offsets; place++) {
            printf("%d offset %ld\n", round, offsets[place]);
            SAY(d_seek(3, offsets[place], 3));
            SAY(d_seek(3, 0, 1));
            SAY(d_seek(3, offsets[place], 4));
            SAY(d_seek(3, 0, 1));
        }
        SAY(round == 0 ? d_ftruncate(3, 40960) : round == 1 ? d_ftruncate(3, 4100) : d_ftruncate(3, 1L << 40));
    }
    SAY(d_close(3));
    SAY(d_open(CWD, "holes", WRITE, 0));
    SAY(d_seek(3, 5000, 3));
    SAY(d_seek(3, 5000, 4));
    SAY(d_seek(3, 0, 5));
    SAY(d_seek(77, 0, 3));
    SAY(d_seek(77, 0, 99));
    SAY(d_close(3));
    SAY(d_open(CWD, ".", READ, 0));
    SAY(d_seek(3, 0, 4) < 0 && d_seek(3, 0, 3) < 0);
    SAY(d_close(3));
    int ends[2];
    SAY(d_pipe(ends, NONBLOCK));
    SAY(d_seek(3, 0, 3));
    SAY(d_close(3));
    SAY(d_close(4));
    SAY(d_unlink("holes"));
}

static void attributes(void) {
    SAY(d_umask(027));
    SAY(d_open(CWD, "masked", READ | WRITE | CREATE, 0666));
    SHOW(d_fstat(3));
    SAY(d_mkdir("masked-folder", 0777));
    SHOW(d_stat("masked-folder", 1));
    SAY(d_umask(022));
    SAY(d_fchmod(3, 04751));
    SHOW(d_fstat(3));
    SAY(d_fchmod(77, 0600));
    SAY(d_futimens(3, 7, 9, SCALEFS_SET_ACCESSED | SCALEFS_SET_MODIFIED));
    SAY(d_fstat(3).accessed * 1000 + d_fstat(3).modified);
    SAY(d_futimens(3, 11, 0, SCALEFS_SET_ACCESSED));
    SAY(d_fstat(3).accessed * 1000 + d_fstat(3).modified);
    SAY(d_futimens(3, 0, 0, SCALEFS_MODIFIED_NOW));
    SAY(d_fstat(3).modified > 1000);
    SAY(d_futimens(77, 0, 0, SCALEFS_MODIFIED_NOW));
    SAY(d_fchown(3, SCALEFS_SAME_ID, SCALEFS_SAME_ID));
    SHOW(d_fstat(3));
    SAY(d_fchown(77, 0, 0));
    SAY(d_truncate(CWD, "masked", 5000));
    SHOW(d_stat("masked", 1));
    SAY(d_truncate(CWD, "masked", -1));
    SAY(d_truncate(CWD, "absent", 0));
    SAY(d_truncate(CWD, "masked-folder", 0));
    SAY(d_symlink("masked", "to-masked"));
    SAY(d_truncate(CWD, "to-masked", 3));
    SHOW(d_stat("to-masked", 1));
    SAY(d_ftruncate(3, 0));
    SAY(d_close(3));
}

static void folders(void) {
    SAY(d_mkdir("a", 0755));
    SAY(d_mkdir("a/b", 0700));
    SAY(d_open(CWD, "a/b", READ | DIRECTORY, 0));
    SAY(d_open(CWD, "f", READ, 0));
    SAY(d_fchdir(4));
    SAY(d_fchdir(77));
    SAY(d_fchdir(3));
    SAY(d_getcwd(100));
    SAY(strcmp(text, "/a/b"));
    SAY(d_getcwd(5));
    SAY(d_getcwd(4));
    SAY(d_open(CWD, "made", WRITE | CREATE, 0600));
    SAY(d_close(5));
    SAY(d_unlink("made"));
    SAY(d_rmdir("../b"));
    SAY(d_getcwd(100));
    SAY(d_open(CWD, "made", WRITE | CREATE, 0600));
    SAY(d_chdir(".."));
    SAY(d_getcwd(100));
    SAY(d_chdir(".."));
    SAY(d_getcwd(100));
    SAY(strcmp(text, "/"));
    LIST(3, 1000);
    SAY(d_close(3));
    SAY(d_close(4));
    SAY(d_mkdir("many", 0755));
    for (int number = 0; number < 100; number++) {
        char path[60];
        sprintf(path, "many/%0*d", number % 30 + 1, number);
        long fd = d_open(CWD, path, WRITE | CREATE, 0600);
        if (fd >= 0) d_close(fd);
    }
    SAY(d_mkdir("many/folder", 0700));
    SAY(d_symlink("x", "many/link"));
    SAY(d_open(CWD, "many", READ | DIRECTORY, 0));
    SAY(d_dup(3));
    LIST(3, 4096);
    LIST(3, 4096);
    LIST(4, 4096);
    SAY(d_seek(4, 0, 0));
    LIST(3, 64);
    SAY(d_seek(3, 0, 0));
    LIST(4, 10);
    LIST(4, 100);
    /* From an offset that a record has told. */
    SAY(d_seek(3, 0, 0));
    char first[24], second[64];
    memset(second, 0, sizeof second);
    SAY(d_getdents(3, first, sizeof first));
    int64_t next = ((scalefs_entry *)first)->next;
    SAY(d_seek(3, 0, 1) == next);
    SAY(d_getdents(3, second, 24));
    SAY(d_seek(4, next, 0) == next);
    SAY(d_getdents(4, second, 24));
    SAY(d_open(CWD, "f", READ, 0));
    LIST(5, 100);
    LIST(77, 100);
    SAY(d_seek(3, -1, 0));
    SAY(d_seek(3, 0, 2) >= -EINVAL);
    for (int fd = 3; fd < 6; fd++) d_close(fd);
}

/* Names for pipes, sockets and, if the caller may make them, devices. None is opened by the library: the host's pipe has no
 * reader, and its other names lead to nothing. */
static void nodes(int makes_devices) {
    SAY(d_mkdir("nodes", 0755));
    SAY(d_chdir("nodes"));
    SAY(d_umask(027));
    SAY(d_mknod("fifo", S_IFIFO | 0666, 0));
    SAY(d_mknod("socket", S_IFSOCK | 0777, 0));
    SAY(d_mknod("file", S_IFREG | 0666, 0));
    SAY(d_mknod("plain", 0606, 0));
    SAY(d_mknod("folder", S_IFDIR | 0777, 0));
    SAY(d_mknod("link", S_IFLNK | 0777, 0));
    SAY(d_mknod("odd", 0150000 | 0777, 0));
    SAY(d_mknod("fifo", S_IFIFO | 0666, 0));
    SAY(d_mknod("fifo/", S_IFIFO | 0666, 0));
    SAY(d_mknod("absent/", S_IFREG | 0666, 0));
    SAY(d_mknod("absent/x", S_IFIFO | 0666, 0));
    SAY(d_mknod("fifo/x", S_IFIFO | 0666, 0));
    SAY(d_mknod("", S_IFIFO | 0666, 0));
    SAY(d_umask(022));
    SHOW(d_stat("fifo", 0));
    SHOW(d_stat("socket", 0));
    SHOW(d_stat("file", 0));
    SHOW(d_stat("plain", 0));
    SAY(d_open(CWD, "fifo", WRITE | NONBLOCK, 0));
    SAY(d_open(CWD, "fifo", WRITE | NONBLOCK | CREATE | EXCLUSIVE, 0600));
    SAY(d_open(CWD, "fifo", READ | DIRECTORY, 0));
    SAY(d_open(CWD, "socket", READ, 0));
    SAY(d_open(CWD, "socket", READ | WRITE | TRUNCATE, 0));
    SAY(d_open(CWD, "socket", READ | CREATE, 0600));
    SAY(d_truncate(CWD, "fifo", 0));
    SAY(d_truncate(CWD, "socket", 0));
    SAY(d_chmod("fifo", 04711));
    SAY(d_link("fifo", "second"));
    SAY(d_symlink("fifo", "to-fifo"));
    SHOW(d_stat("to-fifo", 1));
    SAY(d_rename("second", "socket"));
    SHOW(d_stat("socket", 0));
    SAY(d_access("fifo", 7));
    SAY(d_chdir("fifo"));
    SAY(d_rmdir("fifo"));
    SAY(d_mkdir("fifo", 0777));
    SAY(d_rename("fifo", "third"));
    SAY(d_open(CWD, ".", READ | DIRECTORY, 0));
    LIST(3, 100);
    SAY(d_close(3));
    if (makes_devices) {
        SAY(d_mknod("terminal", S_IFCHR | 0620, makedev(510, 7)));
        SAY(d_mknod("disk", S_IFBLK | 0660, makedev(511, 70000)));
        SHOW(d_stat("terminal", 0));
        SHOW(d_stat("disk", 0));
        SAY(d_truncate(CWD, "disk", 0));
        SAY(d_open(CWD, ".", READ | DIRECTORY, 0));
        LIST(3, 100);
        SAY(d_close(3));
        SAY(d_chmod(".", 0777));
        CHILD_AS(200, 200, 0, NULL)
            SAY(d_mknod("terminal", S_IFCHR | 0620, makedev(510, 7)));
            SAY(d_mknod("other", S_IFCHR | 0620, makedev(510, 7)));
            SAY(d_mknod("other/", S_IFCHR | 0620, makedev(510, 7)));
            SAY(d_mknod("other", S_IFIFO | 0620, 0));
            SAY(d_open(CWD, "terminal", READ, 0));
            SAY(d_open(CWD, "disk", READ, 0));
            SHOW(d_stat("other", 0));
        END_CHILD(0)
        SAY(d_chmod(".", 0755));
        CHILD_AS(200, 200, 0, NULL)
            SAY(d_mknod("another", S_IFCHR | 0620, makedev(510, 7)));
        END_CHILD(0)
    }
    SAY(d_unlink("third"));
    SAY(d_unlink("socket"));
    SAY(d_chdir(".."));
}

/* Descriptors that only stand for an object, and files that no name leads to. */
static void handles(int is_superuser) {
    SAY(d_mkdir("handles", 0755));
    SAY(d_chdir("handles"));
    SAY(d_mkdir("folder", 0755));
    SAY(d_symlink("target", "link"));
    SAY(d_mknod("fifo", S_IFIFO | 0600, 0));
    SAY(d_open(CWD, "file", READ | WRITE | CREATE, 0640));
    SAY(d_close(3));
    SAY(d_open(CWD, "link", HANDLE | NO_FOLLOW, 0));
    SAY(d_open(CWD, "folder", HANDLE | WRITE | TRUNCATE | CREATE | EXCLUSIVE, 0));
    SAY(d_open(CWD, "file", HANDLE | READ | CLOSE_ON_EXEC, 0));
    SAY(d_open(CWD, "fifo", HANDLE, 0));
    SAY(d_open(CWD, "link", HANDLE, 0));
    SAY(d_open(CWD, "file", HANDLE | DIRECTORY, 0));
    SAY(d_open(CWD, "link", HANDLE | NO_FOLLOW | DIRECTORY, 0));
    SHOW(d_fstat(3));
    SHOW(d_fstat(4));
    SHOW(d_fstat(5));
    SHOW(d_fstat(6));
    SAY(d_readlink(3, ""));
    SAY(strcmp(text, "target"));
    SAY(d_readlink(5, ""));
    SAY(d_readlink(CWD, ""));
    SAY(d_readlink(77, ""));
    for (int fd = 3; fd < 7; fd++) {
        printf("descriptor %d\n", fd);
        SAY(d_read(fd, 10));
        SAY(d_write(fd, "x"));
        SAY(d_pwrite(fd, "x", 0));
        SAY(d_ftruncate(fd, 0));
        SAY(d_fchmod(fd, 0600));
        SAY(d_fchown(fd, SCALEFS_SAME_ID, SCALEFS_SAME_ID));
        SAY(d_futimens(fd, 1, 1, SCALEFS_SET_ACCESSED));
        SAY(d_getdents(fd, text, 1000));
        SAY(d_poll(fd, SCALEFS_POLL_IN, 0));
        SAY(d_mmap(4096, READ, SCALEFS_MAP_SHARED, fd, 0));
        SAY(d_fcntl(fd, SCALEFS_GET_FLAGS, 0));
        SAY(d_fcntl(fd, SCALEFS_SET_FLAGS, APPEND));
        SAY(d_fcntl(fd, SCALEFS_GET_ON_EXEC, 0));
        SAY(d_own_object(fd, SCALEFS_SAME_ID, SCALEFS_SAME_ID));
        SAY(d_open(fd, "below", READ | WRITE | CREATE, 0600));
    }
    SAY(d_close(7));
    SAY(d_dup(3));
    SHOW(d_fstat(7));
    SAY(d_fchdir(5));
    SAY(d_fchdir(4));
    SAY(d_getcwd(100));
    SAY(d_chdir(".."));
    SAY(d_unlink("link"));
    SHOW(d_fstat(3));
    for (int fd = 3; fd < 8; fd++) d_close(fd);

    SAY(d_umask(027));
    SAY(d_open(CWD, ".", TEMPORARY | READ, 0666));
    SAY(d_open(CWD, "file", TEMPORARY | WRITE, 0666));
    SAY(d_open(CWD, "absent", TEMPORARY | WRITE, 0666));
    SAY(d_open(CWD, "folder", TEMPORARY | READ | WRITE, 0666));
    SHOW(d_fstat(3));
    SAY(d_write(3, "nameless"));
    SAY(d_seek(3, 4, 0));
    SAY(d_read(3, 100));
    SAY(d_open(CWD, ".", TEMPORARY | WRITE | APPEND | CLOSE_ON_EXEC, 0600));
    SAY(d_fcntl(4, SCALEFS_GET_FLAGS, 0));
    SAY(d_close(4));
    SAY(d_open(CWD, "folder", READ | DIRECTORY, 0));
    LIST(4, 100);
    SAY(d_close(4));
    if (is_superuser) {
        SAY(d_link_object(3, "named"));
        SHOW(d_fstat(3));
        SHOW(d_stat("named", 1));
        SAY(d_link_object(3, "named"));
        SAY(d_link_object(3, "folder/second"));
        SAY(d_link_object(3, "absent/second"));
        SAY(d_link_object(3, "third/"));
        SHOW(d_fstat(3));
        SAY(d_unlink("named"));
        SAY(d_unlink("folder/second"));
        SAY(d_link_object(3, "again"));
        SHOW(d_fstat(3));
        SAY(d_symlink("target", "link"));
        SAY(d_open(CWD, "link", HANDLE | NO_FOLLOW, 0));
        SAY(d_link_object(4, "link-2"));
        SHOW(d_stat("link-2", 0));
        SAY(d_own_object(4, 5, 6));
        SHOW(d_stat("link", 0));
        SAY(d_close(4));
        SAY(d_open(CWD, "folder", HANDLE, 0));
        SAY(d_link_object(4, "folder-2"));
        SAY(d_link_object(77, "x"));
        SAY(d_close(4));
        SAY(d_chmod("folder", 0755));
        CHILD_AS(200, 200, 0, NULL)
            SAY(d_open(CWD, "folder", TEMPORARY | WRITE, 0600));
            SAY(d_open(CWD, "file", READ, 0));
            SAY(d_open(CWD, "file", HANDLE, 0));
            SHOW(d_fstat(4));
        END_CHILD(0)
        SAY(d_rmdir("folder"));
        SAY(d_mkdir("folder", 0700));
        SAY(d_open(CWD, "folder", READ | DIRECTORY, 0));
        SAY(d_rmdir("folder"));
        SAY(d_open(4, ".", TEMPORARY | WRITE, 0600));
        SAY(d_close(4));
    }
    SAY(d_close(3));
    SAY(d_umask(022));
    SAY(d_chdir(".."));
}

static void polls(void) {
    int ends[2];
    SAY(d_open(CWD, "f", READ, 0));
    SAY(d_poll(3, SCALEFS_POLL_IN | SCALEFS_POLL_OUT, 0));
    SAY(d_poll(3, 0, 0));
    SAY(d_poll(77, SCALEFS_POLL_IN, 0));
    SAY(d_poll(-1, SCALEFS_POLL_IN, 0));
    SAY(d_close(3));
    SAY(d_pipe(ends, NONBLOCK | CLOSE_ON_EXEC));
    SAY(ends[0] * 100 + ends[1]);
    SAY(d_fcntl(4, SCALEFS_GET_ON_EXEC, 0));
    SAY(d_poll(3, SCALEFS_POLL_IN, 0));
    SAY(d_poll(3, SCALEFS_POLL_IN, 20));
    SAY(d_poll(4, SCALEFS_POLL_OUT | SCALEFS_POLL_IN, -1));
    SAY(d_write(4, "x"));
    SAY(d_poll(3, SCALEFS_POLL_IN | SCALEFS_POLL_OUT, -1));
    SAY(d_poll(3, SCALEFS_POLL_OUT, 0));
    SAY(d_close(4));
    SAY(d_poll(3, SCALEFS_POLL_IN, 0));
    SAY(d_read(3, 10));
    SAY(d_poll(3, SCALEFS_POLL_IN, -1));
    SAY(d_read(3, 10));
    SAY(d_close(3));
    SAY(d_pipe(ends, NONBLOCK));
    SAY(d_close(3));
    SAY(d_poll(4, SCALEFS_POLL_OUT, 0));
    SAY(d_poll(4, 0, 0));
    SAY(d_close(4));
    SAY(d_pipe(ends, NONBLOCK));
    memset(text, 'y', 4096);
    text[4096] = 0;
    char page[4097];
    strcpy(page, text);
    long written = 0, now;
    while ((now = d_write(4, page)) > 0) written += now;
    SAY(written);
    SAY(now);
    SAY(d_poll(4, SCALEFS_POLL_OUT, 0));
    SAY(d_read(3, 4096));
    SAY(d_poll(4, SCALEFS_POLL_OUT, 0));
    SAY(d_close(3));
    SAY(d_close(4));
}

static void sockets(void) {
    int both[2];
    SAY(d_socketpair(both));
    SAY(both[0] * 100 + both[1]);
    SHOW(d_fstat(3));
    SAY(d_recvfrom(3, 10));
    SAY(d_poll(3, SCALEFS_POLL_IN, 0));
    SAY(d_sendto(4, "a message", NULL));
    SAY(d_poll(3, SCALEFS_POLL_IN, 0));
    SAY(d_recvfrom(3, 4));
    SAY(strcmp(text, "a me"));
    SAY(d_recvfrom(3, 10));
    SAY(d_write(3, "by write"));
    SAY(d_read(4, 100));
    SAY(d_seek(4, 0, 0));
    SAY(d_getsockname(3));
    SAY(d_bind(3, "name"));
    SAY(d_bind(3, "other"));
    SAY(d_bind(4, "name"));
    SAY(d_getsockname(3));
    SAY(strcmp(text + 4096, "name"));
    SAY(d_socket());
    SAY(d_sendto(5, "hello", NULL));
    SAY(d_sendto(5, "hello", "absent"));
    SAY(d_sendto(5, "hello", "name"));
    SAY(d_bind(5, "third"));
    SAY(d_socket());
    SAY(d_bind(6, "fourth"));
    SAY(d_sendto(6, "hello", "third"));
    SAY(d_recvfrom(5, 100));
    SAY(strcmp(text + 4096, "fourth"));
    SAY(d_close(6));
    SAY(d_sendto(5, "hello", "fourth"));
    SAY(d_open(CWD, "f", READ, 0));
    SAY(d_sendto(6, "x", NULL));
    SAY(d_bind(6, "x"));
    SAY(d_getsockname(6));
    SAY(d_recvfrom(6, 1));
    SAY(d_sendto(77, "x", NULL));
    for (int fd = 3; fd < 7; fd++) d_close(fd);
}

static void memory(void) {
    SAY(d_open(CWD, "mapped", READ | WRITE | CREATE, 0600));
    SAY(d_pwrite(3, "abcdef", 0));
    SAY(d_pwrite(3, "xyz", 8000));
    SAY(d_mmap(16384, READ | WRITE, SCALEFS_MAP_SHARED, 3, 0));
    SAY(d_load(2, 3));
    SAY(strcmp(text, "cde"));
    SAY(d_store(4, "EF"));
    SAY(d_read(3, 6));
    SAY(strcmp(text, "abcdEF"));
    SAY(d_load(7998, 6));
    SAY(text[0] * 256 + text[4]);
    SAY(d_load(8192, 1));
    SAY(d_store(8192, "x"));
    SAY(d_msync(0, 16384));
    SAY(d_mprotect(4096, 4096, READ));
    SAY(d_store(4096, "x"));
    SAY(d_load(4096, 1));
    SAY(d_mprotect(4096, 4096, 0));
    SAY(d_load(4096, 1));
    SAY(d_mprotect(65536000, 4096, READ));
    SAY(d_mremap(0, 4096, 12288) * 0);
    SAY(d_load(0, 6));
    SAY(d_munmap(0, 12288));
    SAY(d_load(0, 1));
    SAY(d_munmap(1, 4096));
    SAY(d_mmap(0, READ, SCALEFS_MAP_SHARED, 3, 0));
    SAY(d_mmap(4096, READ, SCALEFS_MAP_SHARED, 3, 1));
    SAY(d_mmap(4096, READ, SCALEFS_MAP_SHARED, 77, 0));
    SAY(d_mmap(8192, READ | WRITE, SCALEFS_MAP_PRIVATE, 3, 0));
    SAY(d_store(0, "own"));
    SAY(d_load(0, 6));
    SAY(strcmp(text, "owndEF"));
    SAY(d_seek(3, 0, 0));
    SAY(d_read(3, 3));
    SAY(strcmp(text, "abc"));
    SAY(d_discard(0, 4096));
    SAY(d_load(0, 3));
    SAY(strcmp(text, "abc"));
    SAY(d_discard(1, 4096));
    SAY(d_munmap(0, 8192));
    SAY(d_mmap(8192, READ | WRITE, SCALEFS_MAP_PRIVATE | SCALEFS_MAP_ANONYMOUS, -1, 0));
    SAY(d_load(5000, 1));
    SAY(d_store(5000, "mine"));
    CHILD
        SAY(d_load(5000, 4));
        SAY(strcmp(text, "mine"));
        SAY(d_store(5000, "its"));
    END_CHILD(7)
    SAY(d_load(5000, 4));
    SAY(strcmp(text, "mine"));
    SAY(d_munmap(0, 8192));
    SAY(d_close(3));
    SAY(d_open(CWD, "mapped", READ, 0));
    SAY(d_mmap(4096, READ | WRITE, SCALEFS_MAP_SHARED, 3, 0));
    SAY(d_close(3));
    SAY(d_open(CWD, "mapped", WRITE, 0));
    SAY(d_mmap(4096, READ, SCALEFS_MAP_PRIVATE, 3, 0));
    SAY(d_close(3));
}

static void processes(void) {
    SAY(d_open(CWD, "f", READ | WRITE | CREATE | TRUNCATE, 0600));
    SAY(d_write(3, "parent "));
    CHILD
        SAY(d_write(3, "child"));
        SAY(d_chdir("a"));
        SAY(d_umask(077));
        SAY(d_close(3));
        SAY(d_open(CWD, "in-child", CREATE | WRITE, 0666));
        SHOW(d_fstat(3));
    END_CHILD(42)
    SAY(d_seek(3, 0, 1));
    SAY(d_umask(022));
    SAY(d_getcwd(100));
    SHOW(d_stat("a/in-child", 1));
    CHILD
        CHILD
        END_CHILD(1)
    END_CHILD(300)
    SAY(d_close(3));
}

/* Rights of others: what POSIX 4.5 asks of user, group and supplementary groups. */
static void users(void) {
    const uint32_t groups[] = {300, 301};
    SAY(d_mkdir("public", 0777));
    SAY(d_chmod("public", 0777));
    SAY(d_open(CWD, "public/of-group", READ | WRITE | CREATE, 0640));
    SAY(d_fchown(3, 100, 300));
    SHOW(d_fstat(3));
    SAY(d_fchmod(3, 02660));
    CHILD_AS(200, 200, 0, NULL)
        SAY(d_open(CWD, "public/of-group", READ, 0));
        SAY(d_access("public/of-group", 4));
        SAY(d_fchmod(3, 0777));
        SAY(d_fchown(3, 200, 200));
        SAY(d_futimens(3, 1, 1, SCALEFS_SET_ACCESSED));
        SAY(d_truncate(CWD, "public/of-group", 0));
    END_CHILD(0)
    CHILD_AS(200, 200, 2, groups)
        SAY(d_open(CWD, "public/of-group", READ | WRITE, 0));
        SAY(d_write(4, "by a member of the group"));
        SHOW(d_fstat(4));
        SAY(d_open(CWD, "public/mine", CREATE | WRITE, 0644));
        SHOW(d_fstat(5));
        SAY(d_fchown(5, SCALEFS_SAME_ID, 301));
        SAY(d_fchown(5, SCALEFS_SAME_ID, 302));
        SAY(d_fchown(5, 201, SCALEFS_SAME_ID));
        SHOW(d_fstat(5));
        SAY(d_fchmod(5, 06755));
        SHOW(d_fstat(5));
    END_CHILD(0)
    CHILD_AS(100, 200, 0, NULL)
        SAY(d_fchmod(3, 02664));
        SHOW(d_fstat(3));
        SAY(d_fchown(3, 100, 200));
        SHOW(d_fstat(3));
        SAY(d_chdir("public"));
        SAY(d_chmod("mine", 0600));
        SAY(d_chown("mine", 100, 100));
    END_CHILD(0)
    SAY(d_close(3));
    SAY(d_chown("public/mine", 500, 501));
    SHOW(d_stat("public/mine", 1));
    SAY(d_mkdir("private", 0700));
    SAY(d_open(CWD, "private", READ | DIRECTORY, 0));
    CHILD_AS(200, 200, 0, NULL)
        SAY(d_fchdir(3));
        SAY(d_open(3, "x", CREATE | WRITE, 0600));
        LIST(3, 100);
    END_CHILD(0)
    SAY(d_close(3));
}

int main(int count, char **arguments) {
    if (count != 4 || !begin(arguments[1])) return 1;
    descriptors();
    holes();
    attributes();
    folders();
    nodes(strcmp(arguments[3], "1") == 0);
    handles(strcmp(arguments[2], "1") == 0);
    polls();
    sockets();
    memory();
    processes();
    if (strcmp(arguments[2], "1") == 0) users();
    end();
    return 0;
}
