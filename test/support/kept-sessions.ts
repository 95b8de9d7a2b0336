import { type LoadOptions, SharedSessions } from '@app/diffusion';
import type { InferenceSession } from 'onnxruntime-node';
import { cpu } from './cpu';

/**
 * Keeps what a spec file opens until its end, so that no graph is opened twice: opening one takes longer than drawing a
 * small picture. It is for models whose graphs are not what is tested.
 */
export class KeptSessions extends SharedSessions {
  /** Load options of tests, with these sessions. */
  readonly options: LoadOptions = { ...cpu, sharedSessions: this };
  private readonly kept: (() => Promise<void>)[] = [];

  override async open(key: string, load: () => Promise<InferenceSession>) {
    const opened = await super.open(key, load);
    this.kept.push(() => opened.release());
    return { session: opened.session, release: () => Promise.resolve() };
  }

  async release(): Promise<void> {
    for (const release of this.kept.splice(0)) await release();
  }
}
