import { parentPort, workerData } from 'node:worker_threads';
import { onceEach } from '@app/process';
import { chooseDevice, defaultMemoryBytes, DeviceUnavailableError } from '../device/device';
import { EngineLoop } from './engine-loop';
import type { EngineCommand, EngineMessage, EngineSettings } from './engine-protocol';

/**
 * Entry of an engine's thread, which owns every session of one device. `EngineLoop` does the work, and
 * `engine-protocol.ts` has the messages. A crash of the runtime ends this thread, or the process, with all its tasks;
 * the service counts a death for each of them, and gives them to an engine one at a time from then on.
 */
async function main(port: NonNullable<typeof parentPort>, settings: EngineSettings): Promise<void> {
  const report = (message: EngineMessage): void => {
    // The pixels are transferred, not copied.
    const moved = message.type === 'picture' ? [message.picture.data.buffer as ArrayBuffer] : [];
    port.postMessage(message, moved);
  };
  const note = onceEach((text) => report({ type: 'note', text }));
  const device = await chooseDevice(settings.device, note).catch((error: unknown) => {
    if (!(error instanceof DeviceUnavailableError)) throw error;
    report({ type: 'unavailable', reason: error.message });
  });
  if (!device) return;
  const { intraOpNumThreads, cacheDir, memoryBytes = await defaultMemoryBytes(device) } = settings;
  const loop = new EngineLoop({ device, intraOpNumThreads, cacheDir }, memoryBytes, report);
  port.on('message', (command: EngineCommand) => {
    if (command.type === 'draw') loop.add(command);
    else if (command.type === 'reserve') loop.reserve(command.bytes);
    else void loop.close().then(() => port.close());
  });
  report({ type: 'ready', device, memoryBytes });
}

if (parentPort) void main(parentPort, workerData as EngineSettings);
