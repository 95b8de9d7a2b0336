import { parentPort } from 'node:worker_threads';
import { AbortError, copyOfTensor, ModelSession, SharedSessions, tensorFromCopy } from '@app/diffusion';
import { OneAtATime } from '@app/process';
import { isCanceled } from './cancel';
import { copyOfError, type SessionAnswer, type SessionCommand } from './session-protocol';
import { threadsNow } from '../time/work-clock';

/** The sessions of this thread, by their numbers. */
class OpenSessions {
  private readonly opened = new Map<number, ModelSession>();
  private readonly sharedSessions = new SharedSessions();

  /** @param reply told as well when a call begins */
  constructor(private readonly reply: (answer: SessionAnswer) => void) {}

  async answer(command: SessionCommand): Promise<SessionAnswer> {
    const { id } = command;
    if (command.type === 'open' || command.type === 'openFile') {
      const session = await this.open(command);
      this.opened.set(id, session);
      const { file, inputs, outputs } = session;
      return { id, type: 'opened', opened: { session: id, file, inputs, outputs } };
    }
    if (command.type === 'run') return this.run(command);
    const session = this.opened.get(command.session)!;
    this.opened.delete(command.session);
    await session.release();
    return { id, type: 'released' };
  }

  private async run(command: Extract<SessionCommand, { type: 'run' }>): Promise<SessionAnswer> {
    const { id, session, feeds, output, cancel } = command;
    if (cancel && isCanceled(cancel)) throw new AbortError();
    const tensors = Object.entries(feeds).map(([name, tensor]) => [name, tensorFromCopy(tensor)] as const);
    this.reply({ id, type: 'began', at: threadsNow() });
    const result = await this.opened.get(session)!.run(Object.fromEntries(tensors), output);
    return { id, type: 'result', endedAt: threadsNow(), tensor: copyOfTensor(result) };
  }

  private open(command: Extract<SessionCommand, { type: 'open' | 'openFile' }>): Promise<ModelSession> {
    if (command.type === 'openFile') return ModelSession.openFile(command.file, command.options);
    const { graph, device, intraOpNumThreads, optimizedModelDir } = command;
    const { sharedSessions } = this;
    return ModelSession.open(graph, { device, intraOpNumThreads, optimizedModelDir, sharedSessions });
  }
}

/** Entry of a thread with sessions: runs what its engine sends, so that the engine need not wait inside the runtime. */
function main(port: NonNullable<typeof parentPort>): void {
  const inOrder = new OneAtATime();
  const reply = (answer: SessionAnswer): void =>
    port.postMessage(answer, answer.type === 'result' ? [answer.tensor.data.buffer as ArrayBuffer] : []);
  const sessions = new OpenSessions(reply);
  port.on('message', (command: SessionCommand | 'close') => {
    if (command === 'close') return void inOrder.idle().then(() => port.close());
    const failed = (error: Error) =>
      reply({ id: command.id, type: 'failed', endedAt: threadsNow(), error: copyOfError(error) });
    void inOrder.run(() => sessions.answer(command).then(reply, failed));
  });
}

if (parentPort) main(parentPort);
