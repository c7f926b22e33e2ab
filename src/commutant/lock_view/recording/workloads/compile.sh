# The work of "The Limits of Optimistic Concurrency" (section 4): a parallel compilation of libFLAC.
# packages: gcc libc6-dev make
# sources: flac
set -e
cd /src/flac/src/libFLAC
flags='-O0 -I../../include -Iinclude -DHAVE_STDINT_H -DHAVE_INTTYPES_H -DHAVE_LROUND -DHAVE_FSEEKO
-DENABLE_64_BIT_WORDS=1 -DFLAC__HAS_OGG=0 -DPACKAGE_VERSION="\"1.4\""'
objects=$(for source in *.c; do case $source in ogg_*) ;; *) echo "${source%.c}.o" ;; esac; done)
exec make -j4 -r CC=gcc CFLAGS="$(echo $flags)" -f - $objects <<'MAKEFILE'
%.o: %.c
	$(CC) $(CFLAGS) -c -o $@ $<
MAKEFILE
