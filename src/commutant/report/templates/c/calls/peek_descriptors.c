
static void do_peek_descriptors(struct result *result, int with_times)
{
    add_item(result, BEGIN_LIST, NULL, NULL, 0);
    for (int fd = 0; fd < TEST_DESCRIPTORS; fd++) {
        struct stat status;
        struct pollfd other_end = {.fd = fd};
        int mode = fcntl(fd, F_GETFL);
        if (mode < 0)
            continue;
        mode &= O_ACCMODE;
        if (fstat(fd, &status) < 0 || poll(&other_end, 1, 0) < 0)
            _exit(3);
        int is_pipe = S_ISFIFO(status.st_mode);
        add_item(result, BEGIN, NULL, NULL, 0);
        add_item(result, NUMBER, "fd", NULL, fd);
        add_stat(result, &status, with_times);
        add_item(result, FLAG, "write_end", NULL, is_pipe && mode == O_WRONLY);
        add_item(result, FLAG, "peer_open", NULL, is_pipe && !(other_end.revents & (POLLHUP | POLLERR)));
        add_item(result, NUMBER, "offset", NULL, is_pipe ? 0 : lseek(fd, 0, SEEK_CUR) / PAGE);
        add_item(result, FLAG, "readable", NULL, mode == O_RDONLY || mode == O_RDWR);
        add_item(result, FLAG, "writable", NULL, mode == O_WRONLY || mode == O_RDWR);
        int again = open_again(getpid(), fd, O_RDONLY);
        if (is_pipe)
            add_waiting(result, again);
        else
            add_pages(result, again);
        close(again);
        add_item(result, END, NULL, NULL, 0);
    }
    add_item(result, END, NULL, NULL, 0);
}
