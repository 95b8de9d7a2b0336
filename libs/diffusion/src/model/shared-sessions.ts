import type { InferenceSession } from 'onnxruntime-node';

interface Shared {
  session: Promise<InferenceSession>;
  users: number;
}

/**
 * Sessions of one device that several models use: a Fine-Tune changes some parts of its base, and has the others in
 * common with it. A session is released with the last model that uses it.
 */
export class SharedSessions {
  private readonly sessions = new Map<string, Shared>();

  /** @param key equal for graphs that compute the same @param load opens the graph, if no one uses it yet */
  async open(
    key: string,
    load: () => Promise<InferenceSession>,
  ): Promise<{ session: InferenceSession; release(): Promise<void> }> {
    const shared = this.sessions.get(key) ?? { session: load(), users: 0 };
    this.sessions.set(key, shared);
    shared.users++;
    let isReleased = false;
    const release = async (): Promise<void> => {
      if (isReleased) return;
      isReleased = true;
      if (--shared.users > 0) return;
      this.sessions.delete(key);
      await (await shared.session).release();
    };
    try {
      return { session: await shared.session, release };
    } catch (error) {
      isReleased = true;
      shared.users--;
      if (this.sessions.get(key) === shared) this.sessions.delete(key);
      throw error;
    }
  }
}
