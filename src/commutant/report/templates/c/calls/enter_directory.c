
static void do_enter_directory(struct result *result, const char *parent)
{
    char path[8192];
    path_of(path, parent, "");
    mkdir(path, 0777); /* if it is not there */
    give_nothing(result, chdir(path));
}
