/* A libvulkan.so.1 that tells Dawn of two features more than Mesa's older software drivers have.

   Dawn takes no adapter that cannot index arrays of images, which compute kernels never do. The features are taken off
   again where a device is made. Only what this needs of Vulkan is declared; everything else is the real library's. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

typedef void (*Function)(void);
typedef Function (*Lookup)(void *instance, const char *name);
typedef uint32_t Features[55];
typedef struct { int type; void *next; Features features; } Features2;
typedef struct {
  int type; const void *next; uint32_t flags, queue_count; const void *queues; uint32_t layer_count; const void *layers;
  uint32_t extension_count; const void *extensions; const uint32_t *features;
} DeviceInfo;

enum { SAMPLED_IMAGES = 34, STORAGE_IMAGES = 36, FEATURES_2 = 1000059000 };

static Lookup real;
static void *last_instance;

static void add(uint32_t *features) { features[SAMPLED_IMAGES] = features[STORAGE_IMAGES] = 1; }

static void features(void *device, uint32_t *found) {
  ((void (*)(void *, uint32_t *))real(last_instance, "vkGetPhysicalDeviceFeatures"))(device, found);
  add(found);
}

static void features2(void *device, Features2 *found) {
  ((void (*)(void *, Features2 *))real(last_instance, "vkGetPhysicalDeviceFeatures2"))(device, found);
  add(found->features);
}

static int create_device(void *physical, const DeviceInfo *info, const void *allocator, void *device) {
  DeviceInfo own = *info;
  Features plain;
  if (own.features) {
    memcpy(plain, own.features, sizeof plain);
    plain[SAMPLED_IMAGES] = plain[STORAGE_IMAGES] = 0;
    own.features = plain;
  }
  for (Features2 *next = (Features2 *)own.next; next; next = next->next)
    if (next->type == FEATURES_2) next->features[SAMPLED_IMAGES] = next->features[STORAGE_IMAGES] = 0;
  return ((int (*)(void *, const DeviceInfo *, const void *, void *))real(last_instance, "vkCreateDevice"))(
      physical, &own, allocator, device);
}

Function vkGetInstanceProcAddr(void *instance, const char *name) {
  if (!real) real = (Lookup)dlsym(dlopen(REAL_LIBRARY, RTLD_NOW), "vkGetInstanceProcAddr");
  if (instance) last_instance = instance;
  if (!strcmp(name, "vkGetInstanceProcAddr")) return (Function)vkGetInstanceProcAddr;
  if (!strcmp(name, "vkGetPhysicalDeviceFeatures")) return (Function)features;
  if (!strncmp(name, "vkGetPhysicalDeviceFeatures2", 28)) return (Function)features2;
  if (!strcmp(name, "vkCreateDevice")) return (Function)create_device;
  return real(instance, name);
}
