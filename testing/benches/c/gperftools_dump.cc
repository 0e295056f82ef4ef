// gperftools has its sampled heap profile in memory, and a program fetches it by a call. This library makes the call at the
// program's end: TCMALLOC_PROFILE names the file. Preloaded after libtcmalloc.so.4.

#include <stdio.h>
#include <stdlib.h>

#include <string>

#include <gperftools/malloc_extension.h>

// Defined by the library; a program that is not linked with it has no other way to it.
__attribute__((destructor)) static void WriteProfile() {
  const char* path = getenv("TCMALLOC_PROFILE");
  if (path == nullptr) return;
  std::string text;
  MallocExtension::instance()->GetHeapSample(&text);
  FILE* out = fopen(path, "w");
  if (out == nullptr) return;
  fwrite(text.data(), 1, text.size(), out);
  fclose(out);
}
