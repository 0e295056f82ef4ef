// TCMalloc has its heap profile in memory only; a program fetches it by a call. This shim makes the call at the program's
// end for a program that is not linked with it: variant `tcmalloc-prof`, for the bench of sampled profiles alone.
//
// TCMALLOC_SAMPLE_PARAMETER is the mean distance of samples in bytes, 0 for none, as gperftools names it.
// TCMALLOC_PROFILE names the file, which gets gperftools' text of a profile whose values are estimates already.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tcmalloc/malloc_extension.h"

namespace {

using tcmalloc::MallocExtension;
using tcmalloc::Profile;
using tcmalloc::ProfileType;

// Before the constructors of the C++ run-time, whose first allocation would draw its sample by the default distance.
__attribute__((constructor(101))) void SetInterval() {
  if (const char* text = getenv("TCMALLOC_SAMPLE_PARAMETER")) {
    MallocExtension::SetProfileSamplingInterval(strtoll(text, nullptr, 10));
  }
}

void CopyMappings(FILE* out) {
  fputs("\nMAPPED_LIBRARIES:\n", out);
  FILE* maps = fopen("/proc/self/maps", "r");
  if (maps == nullptr) return;
  char part[4096];
  for (size_t bytes; (bytes = fread(part, 1, sizeof part, maps)) > 0;) fwrite(part, 1, bytes, out);
  fclose(maps);
}

__attribute__((destructor)) void WriteProfile() {
  const char* path = getenv("TCMALLOC_PROFILE");
  if (path == nullptr) return;
  const Profile profile = MallocExtension::SnapshotCurrent(ProfileType::kHeap);
  FILE* out = fopen(path, "w");
  if (out == nullptr) return;
  int64_t objects = 0, bytes = 0;
  profile.Iterate([&](const Profile::Sample& sample) {
    objects += sample.count;
    bytes += sample.sum;
  });
  const auto values = [out](int64_t count, int64_t sum) {
    const long long n = count, b = sum;
    fprintf(out, "%lld: %lld [%lld: %lld] @", n, b, n, b);
  };
  fputs("heap profile: ", out);
  values(objects, bytes);
  fputs(" heapprofile\n", out);
  profile.Iterate([&](const Profile::Sample& sample) {
    values(sample.count, sample.sum);
    for (int frame = 0; frame < sample.depth; frame++) fprintf(out, " %p", sample.stack[frame]);
    fputc('\n', out);
  });
  CopyMappings(out);
  fclose(out);
}

}  // namespace
