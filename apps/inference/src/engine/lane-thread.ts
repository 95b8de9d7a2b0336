import { parentPort } from 'node:worker_threads';
import { copyOfTensor, ModelSession, SharedSessions, tensorFromCopy } from '@app/diffusion';
import type { LaneAnswer, LaneCommand } from './lane-protocol';
import { copyOfError } from './lane-protocol';
import { OneAtATime } from './one-at-a-time';

/** The sessions of a lane, by their numbers. */
class LaneSessions {
  private readonly opened = new Map<number, ModelSession>();
  private readonly sharedSessions = new SharedSessions();

  async answer(command: LaneCommand): Promise<LaneAnswer> {
    const { id } = command;
    if (command.type === 'open' || command.type === 'openFile') {
      const session = await this.open(command);
      this.opened.set(id, session);
      const { file, inputs, outputs } = session;
      return { id, type: 'opened', opened: { session: id, file, inputs, outputs } };
    }
    const session = this.opened.get(command.session)!;
    if (command.type === 'run') {
      const feeds = Object.entries(command.feeds).map(([name, tensor]) => [name, tensorFromCopy(tensor)] as const);
      const output = await session.run(Object.fromEntries(feeds), command.output);
      return { id, type: 'result', tensor: copyOfTensor(output) };
    }
    this.opened.delete(command.session);
    await session.release();
    return { id, type: 'released' };
  }

  private open(command: Extract<LaneCommand, { type: 'open' | 'openFile' }>): Promise<ModelSession> {
    if (command.type === 'openFile') return ModelSession.openFile(command.file, command.options);
    const { graph, device, intraOpNumThreads, optimizedModelDir } = command;
    const { sharedSessions } = this;
    return ModelSession.open(graph, { device, intraOpNumThreads, optimizedModelDir, sharedSessions });
  }
}

/** Entry of a lane: runs what its engine sends, so that the engine need not wait inside the runtime. */
function main(port: NonNullable<typeof parentPort>): void {
  const sessions = new LaneSessions();
  const inOrder = new OneAtATime();
  const reply = (answer: LaneAnswer): void =>
    port.postMessage(answer, answer.type === 'result' ? [answer.tensor.data.buffer as ArrayBuffer] : []);
  port.on('message', (command: LaneCommand | 'close') => {
    if (command === 'close') return void inOrder.idle().then(() => port.close());
    const failed = (error: Error) => reply({ id: command.id, type: 'failed', error: copyOfError(error) });
    void inOrder.run(() => sessions.answer(command).then(reply, failed));
  });
}

if (parentPort) main(parentPort);
