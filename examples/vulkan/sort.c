/* Sorts a file of numbers by SPIR-V that gpusort has exported, and nothing but Vulkan:
       sort TYPE INPUT OUTPUT [descending]
   TYPE is u32 or f32, the files hold such numbers as the machine has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vulkan/vulkan.h>

#include "gpusort.h"

#define MOST_BINDINGS 9
#define MOST_IN_ROW 65535u /* workgroups, on every device */
#define NO_DEVICE "no Vulkan device was found"
#define BLOCK 256u         /* where parameters may begin in their buffer, on every device */

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "sort: %s\n", what);
        exit(1);
    }
}
#define VULKAN(call) require((call) == VK_SUCCESS, #call)

/* -- the device -------------------------------------------------------------------------------------------------- */

static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static uint32_t family;

static void open_device(void)
{
    const VkApplicationInfo version = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo asked = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &version};
    VkInstance instance;
    require(vkCreateInstance(&asked, NULL, &instance) == VK_SUCCESS, NO_DEVICE);
    uint32_t count = 1;
    VkResult found = vkEnumeratePhysicalDevices(instance, &count, &physical);
    require((found == VK_SUCCESS || found == VK_INCOMPLETE) && count, NO_DEVICE);

    VkQueueFamilyProperties families[16];
    uint32_t num_families = 16;
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &num_families, families);
    while (family < num_families && !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT))
        family++;
    require(family < num_families, "the device has no queue for kernels");
    const float priority = 1;
    const VkDeviceQueueCreateInfo queues = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueFamilyIndex = family, .queueCount = 1,
        .pQueuePriorities = &priority};
    const VkDeviceCreateInfo opened = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queues};
    VULKAN(vkCreateDevice(physical, &opened, NULL, &device));
    vkGetDeviceQueue(device, family, 0, &queue);
}

struct memory {
    VkBuffer buffer;
    unsigned char *bytes; /* as the host sees it */
};

static struct memory memory_of(uint64_t size, VkBufferUsageFlags usage)
{
    struct memory made;
    const VkBufferCreateInfo asked = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size ? size : 4, .usage = usage};
    VULKAN(vkCreateBuffer(device, &asked, NULL, &made.buffer));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, made.buffer, &needs);
    VkPhysicalDeviceMemoryProperties kinds;
    vkGetPhysicalDeviceMemoryProperties(physical, &kinds);
    const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t kind = 0;
    while (kind < kinds.memoryTypeCount
           && !((needs.memoryTypeBits >> kind & 1) && (kinds.memoryTypes[kind].propertyFlags & wanted) == wanted))
        kind++;
    require(kind < kinds.memoryTypeCount, "the host sees none of the device's memory");
    const VkMemoryAllocateInfo taken = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = kind};
    VkDeviceMemory memory;
    VULKAN(vkAllocateMemory(device, &taken, NULL, &memory));
    VULKAN(vkBindBufferMemory(device, made.buffer, memory, 0));
    VULKAN(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&made.bytes));
    return made;
}

/* -- kernels ----------------------------------------------------------------------------------------------------- */

struct pipeline {
    VkDescriptorSetLayout bindings;
    VkPipelineLayout layout;
    VkPipeline kernel;
};

static void *contents(const char *folder, const char *name, size_t *size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", name);
    FILE *file = fopen(path, "rb");
    require(file != NULL, path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    void *bytes = malloc(*size ? *size : 1);
    require(bytes && fread(bytes, 1, *size, file) == *size, path);
    fclose(file);
    return bytes;
}

static struct pipeline pipeline_of(const struct gpusort_kernel *kernel, const char *folder)
{
    struct pipeline made;
    VkDescriptorSetLayoutBinding bindings[MOST_BINDINGS];
    for (uint32_t i = 0; i <= kernel->num_buffers; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i, .descriptorType = i ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
            .descriptorCount = 1, .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = kernel->num_buffers + 1,
        .pBindings = bindings};
    VULKAN(vkCreateDescriptorSetLayout(device, &set, NULL, &made.bindings));
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &made.bindings};
    VULKAN(vkCreatePipelineLayout(device, &layout, NULL, &made.layout));

    VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    code.pCode = contents(folder, kernel->file, &code.codeSize);
    VkShaderModule module;
    VULKAN(vkCreateShaderModule(device, &code, NULL, &module));
    const VkComputePipelineCreateInfo asked = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = made.layout,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module, .pName = kernel->entry}};
    VULKAN(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &asked, NULL, &made.kernel));
    return made;
}

/* -- the schedule ------------------------------------------------------------------------------------------------ */

static void run(const struct gpusort_plan *plan, const struct memory *buffers, const char *folder)
{
    const struct memory parameters = memory_of(plan->num_launches * BLOCK, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT);
    struct pipeline pipelines[GPUSORT_NUM_KERNELS];
    for (uint32_t i = 0; i < GPUSORT_NUM_KERNELS; i++)
        pipelines[i] = pipeline_of(&gpusort_kernels[i], folder);

    const VkDescriptorPoolSize sizes[] = {
        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, plan->num_launches},
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, plan->num_launches * MOST_BINDINGS}};
    const VkDescriptorPoolCreateInfo pooled = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = plan->num_launches, .poolSizeCount = 2,
        .pPoolSizes = sizes};
    VkDescriptorPool sets;
    VULKAN(vkCreateDescriptorPool(device, &pooled, NULL, &sets));
    const VkCommandPoolCreateInfo recorded = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = family};
    VkCommandPool pool;
    VULKAN(vkCreateCommandPool(device, &recorded, NULL, &pool));
    const VkCommandBufferAllocateInfo one = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1};
    VkCommandBuffer commands;
    VULKAN(vkAllocateCommandBuffers(device, &one, &commands));
    const VkCommandBufferBeginInfo begun = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VULKAN(vkBeginCommandBuffer(commands, &begun));

    for (uint32_t i = 0; i < plan->num_launches; i++) {
        const struct gpusort_launch *launch = &plan->launches[i];
        const struct gpusort_kernel *kernel = &gpusort_kernels[launch->kernel];
        const struct pipeline *pipeline = &pipelines[launch->kernel];
        const uint32_t rows = (launch->groups + MOST_IN_ROW - 1) / MOST_IN_ROW;
        const uint32_t columns = (launch->groups + rows - 1) / rows;
        const uint32_t header[GPUSORT_HEADER_WORDS] = {launch->groups, columns};
        memcpy(parameters.bytes + i * BLOCK, header, sizeof header);
        memcpy(parameters.bytes + i * BLOCK + sizeof header, launch->words, sizeof launch->words);

        const VkDescriptorSetAllocateInfo wanted = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorPool = sets, .descriptorSetCount = 1,
            .pSetLayouts = &pipeline->bindings};
        VkDescriptorSet set;
        VULKAN(vkAllocateDescriptorSets(device, &wanted, &set));
        for (uint32_t binding = 0; binding <= kernel->num_buffers; binding++) {
            const VkDescriptorBufferInfo bound = binding
                ? (VkDescriptorBufferInfo){buffers[launch->buffers[binding - 1]].buffer, 0, VK_WHOLE_SIZE}
                : (VkDescriptorBufferInfo){parameters.buffer, i * BLOCK, BLOCK};
            const VkWriteDescriptorSet written = {
                .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .dstSet = set, .dstBinding = binding,
                .descriptorCount = 1, .pBufferInfo = &bound,
                .descriptorType = binding ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER};
            vkUpdateDescriptorSets(device, 1, &written, 0, NULL);
        }
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->kernel);
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->layout, 0, 1, &set, 0, NULL);
        vkCmdDispatch(commands, columns, rows, 1);
        const VkMemoryBarrier after = { /* the next launch, and at the end the host, see what this one wrote */
            .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
            .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT};
        vkCmdPipelineBarrier(
            commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &after, 0, NULL, 0, NULL);
    }
    VULKAN(vkEndCommandBuffer(commands));
    const VkSubmitInfo work = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
    VULKAN(vkQueueSubmit(queue, 1, &work, VK_NULL_HANDLE));
    VULKAN(vkQueueWaitIdle(queue));
}

int main(int count, char **arguments)
{
    require(count == 4 || count == 5, "expected TYPE INPUT OUTPUT [descending]");
    const int is_float = !strcmp(arguments[1], "f32"), descends = count == 5;
    require(is_float || !strcmp(arguments[1], "u32"), "TYPE is u32 or f32");
    char *folder = arguments[0], *slash = strrchr(folder, '/'); /* where the program lies the kernels do */
    folder = slash ? (*slash = 0, folder) : "";

    size_t size;
    void *numbers = contents("", arguments[2], &size);
    struct gpusort_plan plan;
    int (*const schedules[2][2])(uint64_t, struct gpusort_plan *) = {
        {gpusort_sort_u32, gpusort_sort_u32_descending}, {gpusort_sort_f32, gpusort_sort_f32_descending}};
    require(schedules[is_float][descends](size / 4, &plan), "more numbers than a schedule takes");

    open_device();
    struct memory buffers[sizeof plan.buffers / sizeof *plan.buffers], results = {0};
    for (uint32_t i = 0; i < plan.num_buffers; i++) {
        buffers[i] = memory_of(plan.buffers[i].bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
        if (plan.buffers[i].role == GPUSORT_INPUT)
            memcpy(buffers[i].bytes, numbers, size / 4 * 4);
        if (plan.buffers[i].role == GPUSORT_OUTPUT)
            results = buffers[i];
    }
    if (plan.num_launches)
        run(&plan, buffers, folder);

    FILE *file = fopen(arguments[3], "wb");
    require(file && fwrite(results.bytes, 4, size / 4, file) == size / 4 && !fclose(file), arguments[3]);
    return 0;
}
