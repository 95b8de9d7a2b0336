import { parentPort, workerData } from 'node:worker_threads';
import type { EngineCommand, EngineReport, EngineSettings } from './engine-protocol';
import { EngineWork } from './engine-work';

/** Entry of an engine thread: owns every session of one device and draws one request at a time. */
async function main(port: NonNullable<typeof parentPort>): Promise<void> {
  const report = (message: EngineReport): void => {
    // The pixels are transferred, not copied.
    const moved = message.type === 'picture' ? [message.picture.data.buffer as ArrayBuffer] : [];
    port.postMessage(message, moved);
  };
  const work = await EngineWork.start(workerData as EngineSettings, report);
  port.on('message', (command: EngineCommand) => {
    if (command.type === 'draw') void work.draw(command);
    else void work.close().then(() => port.close());
  });
}

if (parentPort) void main(parentPort);
