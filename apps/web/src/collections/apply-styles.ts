import type { Drawing } from '../drawings/drawing';
import { drawingOfPrompt } from '../drawings/drawing';
import { showNew } from '../drawings/feed';
import { stageIds } from '../drawings/store';
import { client } from '../session/session';
import { texts } from '../texts';
import { say } from '../ui/notices';
import { go } from '../ui/route';

/** Records of one page of a list. */
const pageSize = 100;

/** Applies a Style, or all Styles of a Collection, to a Fine-Tune, and shows the pictures as they form. @throws DarkroomError */
export async function applyStyles(finetuneId: string, id: string): Promise<void> {
  const made = await client().finetunes.applyStyles(finetuneId, [{ id }]);
  showNew(await wholePrompts(finetuneId, new Set(made.map((prompt) => prompt.id))));
  stageIds.value = made.map((prompt) => prompt.id);
  go('');
  say(texts.collections.applied(made.length));
}

/** The response has only parts of the Prompts; they are the newest of the Fine-Tune. */
async function wholePrompts(finetuneId: string, ids: ReadonlySet<string>): Promise<Drawing[]> {
  const limit = Math.min(pageSize, Math.max(1, ids.size + 8));
  const newest = await client().prompts.list(finetuneId, { limit });
  return newest.filter(({ id }) => ids.has(id)).map((prompt) => drawingOfPrompt(prompt, finetuneId));
}
