import type { EntityManager } from 'typeorm';
import type { Source } from './missing-thumbnails';

/** Prompts that are remembered; the sweeper finds the thumbnails of the others. */
const most = 10_000;

/** The Prompts that Styles were made from at this process before they had a picture, until they terminate. */
export class AwaitedPrompts {
  /** Their owners. */
  private readonly owners = new Map<string, string>();

  /** Remembers the Prompts of Styles that have no picture yet, in place of the oldest ones. */
  async addThoseOf(manager: EntityManager, styleIds: readonly string[]): Promise<void> {
    const sources = await manager.query<Source[]>(
      `SELECT DISTINCT owner_id AS "ownerId", source_prompt_id AS "promptId" FROM styles
       WHERE id = ANY($1) AND source_prompt_id IS NOT NULL
         AND NOT EXISTS (SELECT FROM images WHERE task_id = source_prompt_id)`,
      [styleIds],
    );
    for (const { ownerId, promptId } of sources) this.owners.set(promptId, ownerId);
    for (const [oldest] of this.owners) {
      if (this.owners.size <= most) return;
      this.owners.delete(oldest);
    }
  }

  /** The owner of a Prompt; undefined if it is not awaited. */
  ownerOf(promptId: string): string | undefined {
    return this.owners.get(promptId);
  }

  delete(promptId: string): void {
    this.owners.delete(promptId);
  }
}
