
static void do_name_file(struct result *result, long file, const char *parent, const char *name)
{
    char scratch[8192], path[8192];
    scratch_path(scratch, file);
    path_of(path, parent, "");
    mkdir(path, 0777); /* if it is not there */
    path_of(path, parent, name);
    give_nothing(result, link(scratch, path));
}
