import { access, constants, open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Why a device cannot be used, as the end of a sentence, and the one thing to do about it, as a clause. */
export interface DeviceProblem {
  cause: string;
  remedy: string;
}

/**
 * PCI vendors of display adapters that a virtual machine emulates: VirtIO, Red Hat, Bochs, VMware, VirtualBox. Vulkan
 * draws on them in software.
 */
const virtualVendors = ['0x1af4', '0x1b36', '0x1234', '0x15ad', '0x80ee'];
const nvidia = '0x10de';
const displayClass = '0x03';

/** Where the dynamic linker looks beside its cache. */
const libraryFolders = [
  'lib',
  'lib64',
  'usr/lib',
  'usr/lib64',
  'usr/lib/x86_64-linux-gnu',
  'usr/lib/aarch64-linux-gnu',
];
/** Where Vulkan's loader looks for drivers. */
const driverFolders = ['etc/vulkan/icd.d', 'usr/share/vulkan/icd.d', 'usr/local/share/vulkan/icd.d'];

/** GPUs and drivers of a Linux machine, read when a device does not work, to tell why. */
export class GpuMachine {
  /** @param root the folder in which `dev`, `etc`, `proc`, `sys` and `usr` lie */
  constructor(
    private readonly root = '/',
    private readonly env: Readonly<Record<string, string | undefined>> = process.env,
  ) {}

  /**
   * Why Vulkan can find no GPU on this machine; undefined if it may find one. Elsewhere than on Linux there always is
   * one behind WebGPU.
   */
  async problemOfGpus(): Promise<DeviceProblem | undefined> {
    if (process.platform !== 'linux') return undefined;
    if ((await this.nvidiaNodes()).includes('nvidia0')) return undefined;
    const nodes = (await this.list('dev/dri')).filter((name) => name.startsWith('renderD'));
    if (nodes.length === 0)
      return { cause: 'there is no GPU in /dev/dri', remedy: "load the kernel's driver of the GPU" };
    const vendors = await Promise.all(
      // A GPU that is part of a processor, and on no bus, has no vendor here.
      nodes.map((name) => this.read(`sys/class/drm/${name}/device/vendor`)),
    );
    const real = nodes.filter((_, index) => !virtualVendors.includes(vendors[index] ?? ''));
    if (real.length === 0)
      return {
        cause: 'the machine has only an emulated display adapter, for which Vulkan draws in software',
        remedy: 'pass a GPU through to it',
      };
    const opened = await Promise.all(real.map((name) => this.isAccessible(`dev/dri/${name}`)));
    if (opened.some(Boolean)) return undefined;
    return {
      cause: `this user may not open /dev/dri/${real[0]}`,
      remedy: 'add it to the group that owns that file, which is mostly "render"',
    };
  }

  /** Why Vulkan finds no GPU although there is one. */
  async problemOfVulkan(): Promise<DeviceProblem> {
    if (process.platform !== 'linux')
      return { cause: 'there is no GPU that WebGPU can use', remedy: "install the GPU's driver" };
    if (!(await this.hasLibrary('libvulkan.so.1')))
      return { cause: "Vulkan's loader, libvulkan.so.1, is missing", remedy: 'install libvulkan1' };
    const drivers = await Promise.all(driverFolders.map((folder) => this.list(folder)));
    if (drivers.flat().length === 0 && !this.env.VK_DRIVER_FILES && !this.env.VK_ICD_FILENAMES)
      return { cause: 'Vulkan has no driver', remedy: 'install mesa-vulkan-drivers' };
    return { cause: "none of Vulkan's drivers finds a GPU", remedy: 'see what "vulkaninfo --summary" lists' };
  }

  /** Why no GPU of NVIDIA is there; undefined if one is, or if it cannot be told. */
  async problemOfNvidia(): Promise<DeviceProblem | undefined> {
    // Windows' subsystem for Linux has another file for all GPUs.
    if (process.platform !== 'linux' || (await this.list('dev')).includes('dxg')) return undefined;
    if ((await this.nvidiaNodes()).length > 0) return undefined;
    if (!(await this.hasNvidiaOnBus()))
      return {
        cause: 'there is no /dev/nvidia0, and no GPU of NVIDIA on the PCI bus',
        remedy: 'name another device, or install one of NVIDIA',
      };
    if ((await this.nvidiaDriver()) === undefined)
      return { cause: "there is no /dev/nvidia0, because NVIDIA's driver does not run", remedy: 'install that driver' };
    return {
      cause: "there is no /dev/nvidia0, although NVIDIA's driver runs",
      remedy: 'give the GPU to this container',
    };
  }

  /** Version of NVIDIA's driver that the kernel has loaded. */
  async nvidiaDriver(): Promise<string | undefined> {
    const [, version] = /\b(\d+\.\d+(?:\.\d+)?)\b/.exec((await this.read('proc/driver/nvidia/version')) ?? '') ?? [];
    return version;
  }

  /** Whether the dynamic linker finds a library, or it lies in one of some other folders. */
  async hasLibrary(name: string, others: readonly string[] = []): Promise<boolean> {
    if (((await this.read('etc/ld.so.cache')) ?? '').includes(`${name}\0`)) return true;
    const given = (this.env.LD_LIBRARY_PATH ?? '').split(':').filter(Boolean);
    const files = [...libraryFolders, ...given, ...others].map((folder) => join(folder, name));
    return (await Promise.all(files.map((file) => this.isAccessible(file, constants.R_OK)))).some(Boolean);
  }

  /** Whether a library needs another: what it needs is named at its beginning. */
  async needs(file: string, library: string): Promise<boolean> {
    const opened = await open(join(this.root, file)).catch(() => undefined);
    if (!opened) return false;
    try {
      const head = Buffer.alloc(2 ** 20);
      const { bytesRead } = await opened.read(head, 0, head.length, 0);
      return head.subarray(0, bytesRead).includes(library);
    } finally {
      await opened.close();
    }
  }

  private async nvidiaNodes(): Promise<string[]> {
    return (await this.list('dev')).filter((name) => /^nvidia\d+$/.test(name));
  }

  private async hasNvidiaOnBus(): Promise<boolean> {
    const folder = 'sys/bus/pci/devices';
    const found = (await this.list(folder)).map(async (name) => {
      const [vendor, kind] = await Promise.all(['vendor', 'class'].map((file) => this.read(join(folder, name, file))));
      return vendor === nvidia && kind?.startsWith(displayClass);
    });
    return (await Promise.all(found)).some(Boolean);
  }

  private list(folder: string): Promise<string[]> {
    return readdir(join(this.root, folder)).catch(() => []);
  }

  private read(file: string): Promise<string | undefined> {
    return readFile(join(this.root, file), 'latin1').then(
      (text) => text.trim(),
      () => undefined,
    );
  }

  private isAccessible(file: string, mode = constants.R_OK | constants.W_OK): Promise<boolean> {
    return access(join(this.root, file), mode).then(
      () => true,
      () => false,
    );
  }
}
