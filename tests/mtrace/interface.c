/* Stands for a QEMU that offers plugin interfaces MIN to CUR and exports what the macros say: loads a plugin as QEMU does, and
   prints the version that the plugin asks for. Usage: program PLUGIN ARGUMENT... */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define STUB(name) \
    void name(void) {}
STUB(qemu_plugin_register_vcpu_init_cb)
STUB(qemu_plugin_register_vcpu_tb_trans_cb)
STUB(qemu_plugin_register_vcpu_tb_exec_cb)
STUB(qemu_plugin_register_vcpu_syscall_cb)
STUB(qemu_plugin_register_atexit_cb)
STUB(qemu_plugin_register_vcpu_insn_exec_cb)
STUB(qemu_plugin_register_vcpu_mem_cb)
STUB(qemu_plugin_tb_n_insns)
STUB(qemu_plugin_tb_get_insn)
STUB(qemu_plugin_insn_data)
STUB(qemu_plugin_insn_size)
STUB(qemu_plugin_insn_vaddr)
STUB(qemu_plugin_mem_size_shift)
STUB(qemu_plugin_mem_is_store)
#ifndef WITHOUT_AN_ADDRESS
STUB(qemu_plugin_get_hwaddr)
#endif
STUB(qemu_plugin_hwaddr_is_io)
STUB(qemu_plugin_hwaddr_phys_addr)
#if CUR >= 2
STUB(qemu_plugin_num_vcpus)
#ifndef WITHOUT_REGISTERS
STUB(qemu_plugin_get_registers)
#endif
STUB(qemu_plugin_read_register)
#endif
STUB(qemu_get_cpu)
STUB(cpu_get_phys_page_debug)
STUB(x86_cpu_gdb_read_register)
STUB(g_byte_array_new)
STUB(g_byte_array_free)
STUB(g_array_free)
#ifndef WITHOUT_CURRENT_CPU
__thread void *current_cpu;
#endif

struct info {
    const char *target_name;
    int min, cur;
    bool system_emulation;
    int smp_vcpus, max_vcpus;
};

int main(int count, char **words) {
    void *plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int *version = dlsym(plugin, "qemu_plugin_version");
    int (*install)(unsigned long, const struct info *, int, char **) = dlsym(plugin, "qemu_plugin_install");
    printf("%d\n", *version);
    fflush(stdout);
    struct info info = {TARGET, MIN, CUR, true, 2, 2};
    return install(1, &info, count - 2, words + 2) == 0 ? 0 : 1;
}
